"""An address, the queues that are bound to it, and where a message to it goes."""
