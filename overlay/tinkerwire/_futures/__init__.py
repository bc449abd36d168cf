"""Running operations: their futures, their progress, and the event loop on which they run."""
