"""Command line: ``tinkerwire serve``, ``tinkerwire demo`` and ``tinkerwire auth``."""
