"""REST clients: runs, checkpoints, sessions, usage."""
