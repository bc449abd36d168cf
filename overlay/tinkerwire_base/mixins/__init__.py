"""Mixins: the methods of models that the contract names."""
