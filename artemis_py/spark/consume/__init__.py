"""Streams that consume a queue: a message is removed when the batch with it is done."""
