"""What goes over the wire: the dialect of a server, and bodies as JSON and as binary messages."""
