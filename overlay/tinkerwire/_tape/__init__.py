"""Recording of the requests and responses of a program, and their replay without a server."""
