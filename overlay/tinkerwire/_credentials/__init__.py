"""Credentials: sources of API keys and tokens, their secrecy, and the signing of requests."""
