"""The strict client: requests in one wire version, and responses that are read by the contract."""
