"""Where a setting comes from, and the reference of all of them."""
