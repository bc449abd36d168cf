"""Recovery of a training client after the server lost its session or model."""
