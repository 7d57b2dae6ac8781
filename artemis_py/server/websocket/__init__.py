"""STOMP over WebSocket (RFC 6455), on the port of STOMP itself."""
