"""Which addresses and queues exist, and how they come and go."""
