"""Wire: the dialect of a server, and bodies as JSON and protobuf."""
