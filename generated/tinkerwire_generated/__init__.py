# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Models and endpoint stubs of the Tinker wire."""
