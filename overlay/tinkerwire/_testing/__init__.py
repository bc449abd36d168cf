"""Servers for the tests of a program, and the settings of the pytest mark."""
