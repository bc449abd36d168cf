"""A folder with the documents of all wire versions, and pages that render them."""
