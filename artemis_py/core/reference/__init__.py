"""What pages, timers and copies know of a queue: its number, its address, and the rules for its messages."""
