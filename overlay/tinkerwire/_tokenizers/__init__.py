"""Tokenizers: the choice of one for a model, and the tokenizer of the embedded models."""
