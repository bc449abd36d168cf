"""``tinkerwire demo``: training on real text, from a new adapter to a resumed checkpoint."""
