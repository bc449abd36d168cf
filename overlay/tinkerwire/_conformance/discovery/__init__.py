"""The discovery of the wire version of a server, and of the operations that it lacks."""
