"""Generators: from the contract to the generated package."""
