"""A small HTTP/1.1 server inside the broker: metrics, health, operations, messages, and the log for readers."""
