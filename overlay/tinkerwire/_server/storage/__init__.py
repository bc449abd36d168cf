"""Storage: checkpoints, training runs and other records in a folder."""
