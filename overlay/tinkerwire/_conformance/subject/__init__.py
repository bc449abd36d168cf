"""The server under test, with the sessions, models and samplers that tests use on it."""
