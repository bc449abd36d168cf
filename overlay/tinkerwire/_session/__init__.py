"""Session: creation at first use, heartbeats, and the cancellation of samples."""
