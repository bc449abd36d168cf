"""Compatibility: methods that code for the official types calls."""
