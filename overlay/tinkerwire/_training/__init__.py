"""Training a model: operations in sequence, batches in chunks, losses, saving and loading."""
