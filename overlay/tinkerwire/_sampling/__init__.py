"""Sampling from weights: drawing, numbering, and clients in other processes."""
