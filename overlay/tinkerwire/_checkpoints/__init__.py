"""Checkpoints: their paths, and the model configuration that saved weights belong to."""
