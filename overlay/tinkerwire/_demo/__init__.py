"""``tinkerwire demo``: the whole road on real text, from an untrained adapter to a continued checkpoint."""
