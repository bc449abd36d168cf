"""Ordering: each operation of a model runs once, in the order of the seq_ids."""
