"""Polling for results of server futures, and the end of operations that no caller waits for."""
