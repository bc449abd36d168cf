"""Polling: results that the server promised, and operations that the caller gave up."""
