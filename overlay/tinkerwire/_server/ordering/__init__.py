"""Ordering: operations of a model run in the order of their seq_ids, each once."""
