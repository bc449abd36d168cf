"""Checkpoints: paths of saved weights, and the model configuration that the weights belong to."""
