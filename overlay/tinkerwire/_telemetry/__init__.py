"""What the Tinker service is told of a session: events, and the class and place of errors."""
