"""Which ready entry is next, and which is the least (the one a ring gives up)."""
