"""What the server keeps: runs, checkpoints, sessions, usage."""
