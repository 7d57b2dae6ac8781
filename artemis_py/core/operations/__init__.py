"""What operators do to messages: move, copy, remove, retry, browse."""
