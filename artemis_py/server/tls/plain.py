"""Clients that speak plain text to a port with TLS: what they speak, and an answer that they understand."""

from __future__ import annotations

from typing import Final

_HANDSHAKE: Final = 22
"""The first byte of each TLS connection: a record of the type handshake (RFC 8446, 5.1)."""
_STOMP: Final = (b"CONNECT", b"STOMP", b"\nCONNECT", b"\r\nCONNECT")
_HTTP: Final = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ")
_HINT: Final = b"This port speaks TLS only"


def is_tls(data: memoryview) -> bool:
    """Do a client's first bytes begin a TLS handshake?"""
    return data[0] == _HANDSHAKE


def spoken(data: memoryview) -> str:
    """The name of the protocol that begins with these bytes."""
    start = bytes(data[:16])
    if start.startswith(_STOMP):
        return "STOMP"
    return "HTTP" if start.startswith(_HTTP) else "something"


def answer_to(data: memoryview) -> bytes:
    """An answer in the client's own protocol; empty if that is not known."""
    protocol = spoken(data)
    if protocol == "STOMP":
        return b"ERROR\nmessage:%s\n\n\0" % _HINT
    if protocol == "HTTP":
        body = _HINT + b": use https\n"
        head = (
            b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
        )
        return head % len(body) + body
    return b""
