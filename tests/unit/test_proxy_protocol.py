"""Headers of the PROXY protocol: what they say, where they end, and what is refused."""

from __future__ import annotations

import asyncio
import socket
import struct
from ipaddress import ip_address, ip_network

import pytest

from artemis_py.server.proxy_protocol import Proxied, ProxyError, ProxyHeaders

PROXY = ("127.0.0.1", 40000)
SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
AFTER = b"CONNECT\naccept-version:1.2\n\n\0"


def block(command: int, family: int, addresses: bytes, more: bytes = b"") -> bytes:
    return SIGNATURE + struct.pack(">BBH", command, family, len(addresses) + len(more)) + addresses + more


def addresses(source: str, target: str) -> bytes:
    return ip_address(source).packed + ip_address(target).packed + struct.pack(">HH", 1234, 61613)


KNOWN = {
    "v1": (b"PROXY TCP4 192.0.2.7 10.0.0.1 1234 61613\r\n", "192.0.2.7", 1234, "V1"),
    "v1 of IPv6": (b"PROXY TCP6 2001:DB8::7 ::1 1234 61613\r\n", "2001:db8::7", 1234, "V1"),
    "v1 unknown": (b"PROXY UNKNOWN\r\n", *PROXY, "V1"),
    "v1 unknown, longest": (b"PROXY UNKNOWN " + b"f" * 91 + b"\r\n", *PROXY, "V1"),
    "v2": (block(0x21, 0x11, addresses("192.0.2.7", "10.0.0.1")), "192.0.2.7", 1234, "V2"),
    "v2 of IPv6": (block(0x21, 0x21, addresses("2001:db8::7", "::1")), "2001:db8::7", 1234, "V2"),
    "v2 with fields": (block(0x21, 0x11, addresses("192.0.2.7", "10.0.0.1"), bytes(9000)), "192.0.2.7", 1234, "V2"),
    "v2 of a health check": (block(0x20, 0x00, b""), *PROXY, "V2"),
    "v2 of a health check with addresses": (block(0x20, 0x11, addresses("192.0.2.7", "10.0.0.1")), *PROXY, "V2"),
    "v2 of a Unix socket": (block(0x21, 0x31, bytes(216)), *PROXY, "V2"),
}
WRONG = {
    "STOMP": (AFTER, "does not begin with a header of the PROXY protocol"),
    "a short frame": (b"STOMP\n\n\0", "does not begin with a header of the PROXY protocol"),
    "TLS": (b"\x16\x03\x01\x02\x00" + bytes(100), "does not begin with a header of the PROXY protocol"),
    "half a line": (b"PROXY TCP4 192.0.2.7", "ended within the header"),
    "half a word": (b"PRO", "ended within the header"),
    "half a block": (KNOWN["v2"][0][:-1], "ended within the header"),
    "no number": (b"PROXY TCP4 192.0.2.7 10.0.0.1 x 61613\r\n", "is not understood"),
    "a port too large": (b"PROXY TCP4 192.0.2.7 10.0.0.1 65536 61613\r\n", "is not understood"),
    "a name": (b"PROXY TCP4 example.com 10.0.0.1 1 2\r\n", "is not understood"),
    "the other family": (b"PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n", "is not understood"),
    "too few words": (b"PROXY TCP4 192.0.2.7\r\n", "is not understood"),
    "a line without an end": (b"PROXY TCP4 " + b"1" * 200, "longer than 107 bytes"),
    "another version": (block(0x31, 0x11, addresses("192.0.2.7", "10.0.0.1")), "unknown version or command: 0x31"),
    "another command": (block(0x22, 0x11, addresses("192.0.2.7", "10.0.0.1")), "unknown version or command: 0x22"),
    "too short": (block(0x21, 0x11, bytes(11)), "too short for its addresses: 11 bytes"),
}


async def read(
    pieces: list[bytes], *, ends: bool, networks: tuple[str, ...] = ("127.0.0.0/8",), limit_s: float = 60.0
) -> tuple[Proxied | None, bytes]:
    """What is found, and what is left for the protocol behind it."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        headers = ProxyHeaders([ip_network(text) for text in networks], limit_s)
        loop = asyncio.get_running_loop()
        reading = asyncio.ensure_future(headers.read(loop, near, PROXY))
        for piece in pieces:
            await asyncio.sleep(0)
            far.sendall(piece)
            for _ in range(3):  # the loop notices it, and the reader takes it
                await asyncio.sleep(0)
        if ends:
            far.shutdown(socket.SHUT_WR)
        found = await reading
        try:
            return found, near.recv(65536)
        except BlockingIOError:
            return found, b""


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.asyncio
async def test_who_it_is(name: str, apart: bool) -> None:
    """Nothing of what follows is taken, however the bytes arrive."""
    header, host, port, version = KNOWN[name]
    cut = 1 if apart and len(header) < 1000 else 4000
    pieces = [header[start : start + cut] for start in range(0, len(header), cut)]
    if apart:
        pieces.append(AFTER)
    else:
        pieces[-1] += AFTER
    found, rest = await read(pieces, ends=False)
    assert found == Proxied(host, port, "127.0.0.1:40000", version)
    assert rest == AFTER


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.asyncio
async def test_what_is_refused(name: str) -> None:
    data, words = WRONG[name]
    with pytest.raises(ProxyError, match=words):
        await read([data], ends=True)


@pytest.mark.asyncio
async def test_a_check_of_the_port_is_no_error() -> None:
    assert await read([], ends=True) == (None, b"")


@pytest.mark.asyncio
async def test_nor_is_one_that_ends_with_a_reset() -> None:
    near, far = socket.socketpair()
    with near:
        near.setblocking(False)
        near.send(b"not read")
        far.close()
        with pytest.raises(ConnectionResetError):
            near.recv(1, socket.MSG_PEEK)
        headers = ProxyHeaders([ip_network("127.0.0.0/8")], 60.0)
        assert await headers.read(asyncio.get_running_loop(), near, PROXY) is None


@pytest.mark.asyncio
async def test_strangers_are_not_read() -> None:
    with pytest.raises(ProxyError, match=r"outside of proxyNetworks \(10\.0\.0\.0/8, 192\.0\.2\.1/32\)"):
        await read([KNOWN["v1"][0]], ends=False, networks=("10.0.0.0/8", "192.0.2.1/32"))


@pytest.mark.asyncio
async def test_who_says_nothing_is_closed() -> None:
    with pytest.raises(ProxyError, match=r"within 0\.01 s \(handshakeTimeout"):
        await read([b"PROXY "], ends=False, limit_s=0.01)


@pytest.mark.asyncio
async def test_an_ipv4_address_of_a_socket_for_both_is_believed_as_what_it_is() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.sendall(KNOWN["v1"][0])
        headers = ProxyHeaders([ip_network("10.0.0.0/8")], 60.0)
        found = await headers.read(asyncio.get_running_loop(), near, ("::ffff:10.0.0.9", 1, 0, 0))
    assert found is not None
    assert (found.host, found.proxy) == ("192.0.2.7", "[::ffff:10.0.0.9]:1")
