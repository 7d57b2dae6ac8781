"""Ring queues: what a full ring gives up, and when."""
