"""The gateway: a server of every wire version in front of a server of one wire version."""
