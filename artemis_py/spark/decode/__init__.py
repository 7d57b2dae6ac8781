"""From the bytes of a log to columns, and to what they add up to."""
