"""The commands that send, receive and browse messages, over STOMP."""
