"""STOMP on the wire: bytes to frames, and frames to bytes."""
