"""STOMP 1.0, 1.1 and 1.2 without I/O: bytes in, requests to the core, bytes out."""
