"""Comparison of two contracts, and the effect of each change on clients of the old one."""
