"""Absorption of a release: its changes are written into the files of the contract, in place."""
