"""Messages are recorded, and put on their queues or into pages."""
