"""Logins of HTTP that were refused, for whoever wants to hear of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from artemis_py.security.login import Login


@final
class Refusals:
    """Sessions of STOMP tell of theirs themselves. ``on_refusal`` gets the user (empty if none was named), the client's
    IP address, and the reason that the client got.
    """

    __slots__ = ("on_refusal",)

    def __init__(self) -> None:
        self.on_refusal: Callable[[str, str, str], None] | None = None

    def note(self, login: Login, user: str | None, peer: str) -> None:
        """A login was decided by a refusal."""
        if self.on_refusal is not None:
            self.on_refusal(user or "", peer, login.refusal)
