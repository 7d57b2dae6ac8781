"""Who asks for something over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from artemis_py.security.identity import Identity


@final
@dataclass(frozen=True, slots=True)
class Asking:
    """The user who has logged in (None: nobody has to), and the client's IP address."""

    identity: Identity | None = None
    peer: str = ""

    @property
    def user(self) -> str | None:
        """The user's name."""
        return None if self.identity is None else self.identity.user
