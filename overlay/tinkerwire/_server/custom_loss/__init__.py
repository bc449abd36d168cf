"""Custom losses: validation and evaluation of the graphs that clients send."""
