"""Storage of checkpoints and training runs in a folder."""
