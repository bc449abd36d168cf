"""Conversion: models to JSON and back, at one wire version."""
