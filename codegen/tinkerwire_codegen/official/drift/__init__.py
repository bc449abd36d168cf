"""Drift: differences between a release and the contract, and the edits that record them."""
