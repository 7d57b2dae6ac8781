"""What the user of a request may do, for handlers that check permissions themselves."""

from __future__ import annotations

from typing import final

from artemis_py.errors import NotAllowedError
from artemis_py.management.artemis.guard import Guard, Open
from artemis_py.security.rights import Peer, Rights
from artemis_py.server.gate import SecurityGate
from artemis_py.server.http.messages import Request

_OPEN = Open()


def guard_of(gate: SecurityGate | None, prefix: str, request: Request) -> Guard:
    """The rights of the user; without a gate nobody logs in. ``prefix`` is ``management-rbac-prefix``."""
    if gate is None:
        return _OPEN
    if request.identity is None:
        return _Nobody()
    return _Of(gate.authorizer.rights_of(request.identity, Peer(request.address, request.acceptor)), prefix)


@final
class _Of:
    """The rights of one user."""

    def __init__(self, rights: Rights, prefix: str) -> None:
        self._rights = rights
        self._prefix = prefix

    def may(self, right: str, address: str) -> bool:
        """Is it permitted?"""
        return self._rights.may(right, f"{self._prefix}.{address}")

    def demand(self, right: str, address: str) -> None:
        """Raises NotAllowedError if it is not."""
        self._rights.demand(right, f"{self._prefix}.{address}")


@final
class _Nobody:
    """Nobody has logged in where users do: nothing is permitted."""

    def may(self, right: str, address: str) -> bool:
        """No."""
        return False

    def demand(self, right: str, address: str) -> None:
        """Raises NotAllowedError."""
        raise NotAllowedError(f"log in to {right} {address}")
