"""How replays read the log: slices of its files, read by a thread."""
