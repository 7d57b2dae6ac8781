"""Fills new queues from the log."""
