"""The command that watches the queues of a running broker."""
