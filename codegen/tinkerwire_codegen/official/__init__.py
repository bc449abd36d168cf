"""The wire as a released SDK describes it, read without running the SDK, and compared with the contract."""
