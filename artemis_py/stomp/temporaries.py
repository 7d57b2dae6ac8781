"""Temporary destinations: which address is behind ``/temp-queue/NAME``, who shares it, and who may read it.

A client's NAME is its own affair: on another client's connection it means another address. The address behind it has a
name that nobody can guess, so only those send to it who got it in a ``reply-to``. Reading it takes more: the
connection itself, or another one of the same client.

The same client is one with the same client-id. Clients that give none are distinguished by their connections, because
many programs share a login and use one NAME; but a NAME that holds a UUID is a secret of those who use it, and means
the same on all connections with one login (or all without).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, final

from artemis_py.core.addresses.address import ANYCAST, MULTICAST, Address
from artemis_py.core.broker import Broker
from artemis_py.errors import LimitError
from artemis_py.security.rights import Permit

PREFIXES: Final = {"/temp-queue/": ANYCAST, "/temp-topic/": MULTICAST}
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}")
_SPOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A NAME that may be part of an address: no wildcard, no ``::``, nothing to escape."""


@final
class Client:
    """Who uses a temporary destination: the number of the connection, and what it said of itself in CONNECT."""

    __slots__ = ("client_id", "origin", "user")

    def __init__(self, origin: int, client_id: str | None, user: str | None) -> None:
        self.origin = origin
        self.client_id = client_id
        self.user = user


@final
class Temporary:
    """One temporary destination. Each connection that uses it becomes a holder; it is deleted with the last holder."""

    __slots__ = ("address", "client_id", "holders", "keys", "routing_type", "user")

    def __init__(self, address: str, routing_type: str, client: Client, keys: list[str]) -> None:
        self.address = address
        self.routing_type = routing_type
        self.client_id = client.client_id
        self.user = client.user
        self.keys = keys
        self.holders: set[int] = set()


@final
class Temporaries:
    """All temporary destinations of a broker, over all of its acceptors. ``secret`` makes a text that nobody can guess,
    another one with each call.
    """

    __slots__ = ("_by_address", "_by_key", "_held", "_secret")

    def __init__(self, secret: Callable[[], str]) -> None:
        self._secret = secret
        self._by_key: dict[str, Temporary] = {}
        self._by_address: dict[str, Temporary] = {}
        self._held: dict[int, list[Temporary]] = {}
        """By the number of the connection."""

    def name_of_subscription(self) -> str:
        """A name for the queue of one subscription, which goes with it: nobody else can read it as
        ``address::queue``.
        """
        return f"temporary-{self._secret()}"

    def would_make(self, destination: str, client: Client) -> bool:
        """Is this a temporary destination that is not there yet?"""
        if not destination.startswith(tuple(PREFIXES)):
            return False
        return not any(key in self._by_key for key in _keys(destination, client))

    def obtain(self, destination: str, client: Client, most: int) -> Temporary | None:
        """The temporary destination of this name for a client, which becomes a holder; None for any other name. Raises
        LimitError when the connection holds ``most`` others.
        """
        prefix = next((prefix for prefix in PREFIXES if destination.startswith(prefix)), None)
        if prefix is None:
            return None
        keys = _keys(destination, client)
        for key in keys:
            found = self._by_key.get(key)
            if found is not None:
                self._check(found, client.origin, most)
                self._add_holder(found, client.origin)
                return found
        self._check(None, client.origin, most)
        name = destination[len(prefix) :]
        shown = f".{name}" if _SPOKEN.fullmatch(name) else ""
        made = Temporary(f"{prefix[1:-1]}.{self._secret()}{shown}", PREFIXES[prefix], client, keys)
        self._add_holder(made, client.origin)
        self._by_address[made.address] = made
        for key in keys:
            self._by_key[key] = made
        return made

    def may_read(self, address: str, client: Client) -> bool:
        """May a client consume from the temporary destination that has this address?"""
        found = self._by_address.get(address)
        if found is None or client.origin in found.holders:
            return True
        if client.client_id or found.client_id:
            return client.client_id == found.client_id
        return bool(client.user) and client.user == found.user

    def add_holder(self, address: str, origin: int) -> None:
        """A connection reads the address under its own name."""
        found = self._by_address.get(address)
        if found is not None:
            self._add_holder(found, origin)

    def _check(self, temporary: Temporary | None, origin: int, most: int) -> None:
        if temporary is not None and origin in temporary.holders:
            return
        if len(self._held.get(origin, ())) >= most:
            raise LimitError(
                f"Too many temporary destinations: a connection may have {most}; use another connection, or raise "
                "maxTemporaryDestinations of the acceptor"
            )

    def _add_holder(self, temporary: Temporary, origin: int) -> None:
        if origin not in temporary.holders:
            temporary.holders.add(origin)
            self._held.setdefault(origin, []).append(temporary)

    def release(self, origin: int) -> list[str]:
        """A connection ends; returns the addresses that go with it."""
        gone: list[str] = []
        for temporary in self._held.pop(origin, ()):
            temporary.holders.discard(origin)
            if not temporary.holders:
                gone.append(temporary.address)
                del self._by_address[temporary.address]
                for key in temporary.keys:
                    del self._by_key[key]
        return gone


def obtain_address(broker: Broker, temporary: Temporary, by: str, permit: Permit | None = None) -> Address:
    """The address of a temporary destination, created on first use for the login ``by``, with all rights if there is no
    ``permit``. Raises LimitError and NotAllowedError.
    """
    found = broker.addresses.get(temporary.address)
    return found or broker.resolver.create_temporary_address(temporary.address, temporary.routing_type, by, permit)


def _keys(destination: str, client: Client) -> list[str]:
    """Under which keys a destination is shared, the narrowest first. No part but the last holds a NUL."""
    keys = [f"connection\0{client.origin}\0{destination}"]
    if client.client_id:
        keys.append(f"client\0{client.client_id}\0{destination}")
    elif _UUID.search(destination):
        keys.append(f"user\0{client.user or ''}\0{destination}")
    return keys
