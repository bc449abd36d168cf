"""Requests made from the schemas of the contract: valid and bad ones, and walks along its links."""
