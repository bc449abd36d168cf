"""The conformance kit: requirements on servers of the Tinker API, each with a test that reads strictly."""
