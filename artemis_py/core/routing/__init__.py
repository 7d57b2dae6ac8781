"""From a batch of messages to the queues that take it."""
