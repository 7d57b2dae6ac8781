"""From names to addresses and queues, and how those come and go."""
