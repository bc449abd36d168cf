"""Transport: the address of a server, and the ways in which bytes reach it."""
