"""Which ready entry is next, and which is the least: the one that a ring drops."""
