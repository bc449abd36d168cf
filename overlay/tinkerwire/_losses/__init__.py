"""Losses and diagnostics that a training loop computes from log probabilities."""
