"""Diagnosis: checks of the connection to a server, step by step, with the way out of each problem."""
