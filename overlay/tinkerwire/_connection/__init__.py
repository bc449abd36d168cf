"""Connection: sends requests to one server, with dialect, retries, operations and session state."""
