"""Pages of HTML that need neither network nor other files, and their common style."""
