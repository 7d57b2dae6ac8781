"""Lists of what the broker has: which fields they have, and which rows somebody wants."""
