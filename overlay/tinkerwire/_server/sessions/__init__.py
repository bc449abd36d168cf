"""Sessions, models and samplers, which exist as long as the server process."""
