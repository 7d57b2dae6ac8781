"""What operators see of the messages on a queue, and do with them."""
