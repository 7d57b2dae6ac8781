"""What happens in the broker, for those who listen: messages on an address, and server-sent events over HTTP."""
