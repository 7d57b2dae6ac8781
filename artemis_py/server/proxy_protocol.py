"""The PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt): a load balancer says whose connection it
hands on, before the first byte of TLS, HTTP or STOMP.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.server.transports import shown_address

_SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
_LINE_START: Final = b"PROXY "
_LINE_BYTES_MAX: Final = 107
"""With its CRLF; the specification has counted."""
_START_BYTES: Final = len(b"PROXY UNKNOWN\r\n")
"""The shortest header of version 1, and one byte less than the shortest of version 2."""
_LOCAL: Final = 0x20
_PROXIED: Final = 0x21
_FAMILIES: Final = {0x11: 4, 0x21: 16}
"""TCP over IPv4 and IPv6: how many bytes an address has. Of others nothing is read, as the specification has it."""
_READ_BYTES: Final = 4096
_CUT: Final = "it ended within the header of the PROXY protocol"
_HEADER_S: Final = 10.0
"""How long a header may take where ``handshakeTimeout`` is 0."""


class ProxyError(Exception):
    """A connection does not begin as it must; the text says how."""


@final
@dataclass(frozen=True, slots=True)
class Proxied:
    """A connection that a proxy has handed on."""

    host: str
    """The client's IP address; that of the proxy if the connection is its own (a health check), or it does not know."""
    port: int
    proxy: str
    """The proxy, as host:port."""
    version: str
    """V1 or V2, as in Artemis."""

    @property
    def address(self) -> str:
        """The client, as host:port."""
        return shown_address((self.host, self.port))


@final
class ProxyHeaders:
    """Reads the header of each connection of one acceptor. ``networks`` are those of the proxies that are believed."""

    def __init__(self, networks: Sequence[IPv4Network | IPv6Network], limit_s: float) -> None:
        self._networks = networks
        self._limit_s = limit_s

    async def read(
        self, loop: asyncio.AbstractEventLoop, client: socket.socket, place: tuple[Any, ...]
    ) -> Proxied | None:
        """Take the header, and no byte more, from a socket just accepted from ``place``; None if it was closed without
        a byte, as a check of the port does. Raises ProxyError if this connection must be closed.
        """
        if not self._believes(place[0]):
            shown = ", ".join(map(str, self._networks))
            raise ProxyError(f"it comes from outside of proxyNetworks ({shown}): add the address of the load balancer")
        try:
            return await asyncio.wait_for(_read(loop, client, place[0], place[1]), self._limit_s)
        except TimeoutError:
            raise ProxyError(
                f"no header of the PROXY protocol within {self._limit_s:g} s (handshakeTimeout of the acceptor)"
            ) from None
        except OSError:  # reset, as some checks of a port end
            return None

    def _believes(self, host: str) -> bool:
        address: IPv4Address | IPv6Address = ip_address(host.partition("%")[0])
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def headers_of(acceptor: AcceptorConfig) -> ProxyHeaders | None:
    """What reads the headers of an acceptor's connections; None if it has none."""
    if not acceptor.bool_param("proxyProtocolEnabled"):
        return None
    networks = [ip_network(text.strip()) for text in acceptor.list_param("proxyNetworks")]
    return ProxyHeaders(networks, acceptor.int_param("handshakeTimeout") / 1000 or _HEADER_S)


async def _read(loop: asyncio.AbstractEventLoop, client: socket.socket, host: str, port: int) -> Proxied | None:
    proxy = shown_address((host, port))
    start = b""
    while len(start) < _START_BYTES:
        data = await loop.sock_recv(client, _START_BYTES - len(start))
        if not data:
            if start:
                raise ProxyError(_CUT)
            return None
        start += data
        if not any(start.startswith(known[: len(start)]) for known in (_LINE_START, _SIGNATURE)):
            raise ProxyError("it does not begin with a header of the PROXY protocol, as proxyProtocolEnabled demands")
    if start.startswith(_LINE_START):
        found = _source_of_line(await _line(loop, client, start))
        version = "V1"
    else:
        found = await _source_of_block(loop, client, start + await _exactly(loop, client, 1))
        version = "V2"
    if found is None:
        return Proxied(host, port, proxy, version)
    return Proxied(found[0], found[1], proxy, version)


async def _exactly(loop: asyncio.AbstractEventLoop, client: socket.socket, size: int) -> bytes:
    """So many further bytes of the header."""
    found = b""
    while len(found) < size:
        data = await loop.sock_recv(client, size - len(found))
        if not data:
            raise ProxyError(_CUT)
        found += data
    return found


# ---- version 1 -------------------------------------------------------------------------------------------------------


async def _line(loop: asyncio.AbstractEventLoop, client: socket.socket, start: bytes) -> bytes:
    """The line that begins with ``start``, without its CRLF. What follows it belongs to the client's protocol, so bytes
    are looked at before they are taken.
    """
    line = start
    while not line.endswith(b"\r\n"):
        if len(line) >= _LINE_BYTES_MAX:
            raise ProxyError(f"its PROXY line is longer than {_LINE_BYTES_MAX} bytes")
        line += await _exactly(loop, client, 1)
        if not line.endswith((b"\r", b"\n")):
            try:
                ahead = client.recv(_LINE_BYTES_MAX - len(line), socket.MSG_PEEK)
            except (BlockingIOError, InterruptedError):
                continue
            end = ahead.find(b"\r")
            line += client.recv(len(ahead) if end < 0 else end) if end else b""
    return line[:-2]


def _source_of_line(line: bytes) -> tuple[str, int] | None:
    """The client's address and port; None if the proxy does not know them."""
    words = line.split(b" ")
    if words[1] == b"UNKNOWN":
        return None
    try:
        kind, source, target, source_port, target_port = (word.decode("ascii") for word in words[1:])
        address, _ = ip_address(source), ip_address(target)
        port, _ = _port(source_port), _port(target_port)
    except ValueError:
        raise ProxyError(f"its PROXY line is not understood: {line!r}") from None
    if kind != f"TCP{address.version}":
        raise ProxyError(f"its PROXY line is not understood: {line!r}")
    return str(address), port


def _port(text: str) -> int:
    """Raises ValueError: not a port."""
    if not text.isdecimal() or int(text) > 65535:
        raise ValueError(text)
    return int(text)


# ---- version 2 -------------------------------------------------------------------------------------------------------


async def _source_of_block(
    loop: asyncio.AbstractEventLoop, client: socket.socket, start: bytes
) -> tuple[str, int] | None:
    """Read what follows the first 16 bytes: addresses and ports, and further fields, which nobody needs here."""
    command, family = start[12], start[13]
    size = int.from_bytes(start[14:16])
    if command not in (_LOCAL, _PROXIED):
        raise ProxyError(f"its PROXY header has an unknown version or command: {command:#04x}")
    address_size = _FAMILIES.get(family, 0)
    addresses_size = 2 * address_size + 4 if address_size else 0
    if command == _PROXIED and size < addresses_size:
        raise ProxyError(f"its PROXY header is too short for its addresses: {size} bytes")
    addresses = await _exactly(loop, client, min(size, addresses_size))
    left = size - len(addresses)
    while left:
        left -= len(await _exactly(loop, client, min(left, _READ_BYTES)))
    if command == _LOCAL or not addresses_size:
        return None
    port = int.from_bytes(addresses[2 * address_size : 2 * address_size + 2])
    return str(ip_address(addresses[:address_size])), port
