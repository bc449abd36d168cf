"""Keys and tokens: where they come from, how they are kept secret, how requests are signed with them."""
