"""Generator of tinkerwire_generated, and the other tools around the contract."""
