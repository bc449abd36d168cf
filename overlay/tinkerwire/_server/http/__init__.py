"""HTTP without a socket: value types, routing, validation and encoding."""
