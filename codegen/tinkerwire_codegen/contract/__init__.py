"""The contract: its files as one document, checked and exported."""
