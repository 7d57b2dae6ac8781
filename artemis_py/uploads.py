"""Large bodies on their way into files, as the protocol sees them; storage implements both classes.

A protocol hands over what a client sends, and waits until a body is where it has to be. Which file that is, and when it
is written, is storage's affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from artemis_py.message import BodyFiles, LargeBody


@mypyc_attr(allow_interpreted_subclasses=True)
class IncomingBody(ABC):
    """One large body that a client is sending: ``append`` each part, then ``end``."""

    body: LargeBody
    """The body for the message. Use it once ``may_go_on`` is true and there is no ``failure``."""
    failure: str | None
    """Why the disk had no room for it. Further parts are dropped then."""

    @property
    @abstractmethod
    def may_go_on(self) -> bool:
        """Is everything written, and synced where it has to be? True after a failure, too."""

    @abstractmethod
    def refuse(self, reason: str) -> None:
        """Refuse the body: there is no room for it."""

    @abstractmethod
    def append(self, data: bytes) -> None:
        """Add the next part."""

    @abstractmethod
    def end(self) -> None:
        """The body is complete."""


@mypyc_attr(allow_interpreted_subclasses=True)
class BodyStore(BodyFiles):
    """Where the large bodies of a broker go."""

    @abstractmethod
    def begin(self, *, durable: bool) -> IncomingBody:
        """Make room for a new body. A ``durable`` one outlives the broker."""

    @property
    @abstractmethod
    def is_full(self) -> bool:
        """Is the disk too full for bodies to grow?"""

    @property
    @abstractmethod
    def may_go_on(self) -> bool:
        """Does the disk keep up, and has it room? Otherwise senders of large bodies wait."""
