"""Base of the generated code: models, their conversion to and from the wire, errors and calls."""
