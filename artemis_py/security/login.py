"""A login under way, and who decides it: what STOMP and HTTP ask, and what the server answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, final

from artemis_py.security.identity import Credentials, Identity


@final
class Login:
    """One attempt. It is decided once, by an identity or by a refusal."""

    __slots__ = ("identity", "is_given_up", "is_open", "refusal")

    def __init__(self) -> None:
        self.identity: Identity | None = None
        self.refusal = ""
        """Why the client is refused, as it is told; empty while undecided, and for an identity."""
        self.is_open = False
        """Was the client refused without an answer to who it is? The same credentials may be good later."""
        self.is_given_up = False
        """The client has left; nobody waits for the decision any more."""

    @property
    def may_go_on(self) -> bool:
        """Is it decided?"""
        return self.identity is not None or bool(self.refusal)


class LoginDesk(Protocol):
    """Decides logins. For the event loop's thread; the work is done elsewhere."""

    def begin(self, credentials: Credentials, wake: Callable[[], None]) -> Login:
        """Begin a login. It may be decided when this returns; otherwise ``wake`` is called when it is. If the client
        leaves meanwhile, set ``is_given_up``, which saves the work of a verification that has not begun.
        """
