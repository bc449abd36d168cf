"""Command line; :mod:`.commands` lists the commands."""
