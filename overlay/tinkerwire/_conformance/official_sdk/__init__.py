"""Programs of the official SDK: the requests of one of its releases, and what that release accepts in return."""
