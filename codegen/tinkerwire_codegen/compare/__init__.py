"""Two contracts, or two versions of one, and what the change means for those who speak the old one."""
