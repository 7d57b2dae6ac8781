"""Messages are written down, and put on the queues that take them, or into pages."""
