"""From a message that is sent to the queues that get it."""
