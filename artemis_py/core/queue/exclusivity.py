"""Which clients' consumers a queue admits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from artemis_py.core.consumer import Consumer, Reader
from artemis_py.errors import LimitError

NONE: Final = "NONE"
_LINK: Final = "LINK"
_SHARED_SUBSCRIPTION: Final = "SHARED_SUBSCRIPTION"
_CONNECTION: Final = ("CONNECTION", "SESSION")
_CONTAINER: Final = "CONTAINER"


@final
@dataclass(slots=True)
class Exclusivity:
    """``exclusivity-policy`` (docs/queues.md, Who is admitted): the first consumer's connection, client id or user
    becomes the owner, and the queue refuses others.

    A STOMP connection has one session, so SESSION is the same as CONNECTION. Ownership by a connection ends with its
    last consumer. A client id or user owns the queue until it is deleted. A consumer that asks for it (SUBSCRIBE with
    ``exclusive:true``) is alone on its queue, whatever the policy.
    """

    policy: str = NONE
    owner: str | None = None

    @property
    def outlives_consumers(self) -> bool:
        """Must a restart know the owner?"""
        return self.owner is not None and self.policy not in _CONNECTION

    def admit(self, queue_name: str, consumer: Consumer, others: Sequence[Consumer]) -> None:
        """Check a consumer that wants to attach; it may become the owner. Raises LimitError when the queue does not
        admit it.
        """
        if others and (consumer.exclusive or others[0].exclusive):
            raise LimitError(
                f"Queue {queue_name} already has a consumer, and one of the two asked to be exclusive (header "
                "exclusive)"
            )
        if self.policy in (NONE, _SHARED_SUBSCRIPTION):
            return
        if self.policy == _LINK:
            if others:
                raise LimitError(f"Queue {queue_name} admits one consumer (exclusivity-policy LINK)")
            return
        who = self._who(queue_name, consumer.reader)
        if self.policy in _CONNECTION and not others:
            self.owner = None
        if self.owner is None:
            self.owner = who
        elif self.owner != who:
            raise LimitError(
                f"Queue {queue_name} belongs to another {self._owner_is} (exclusivity-policy {self.policy})"
            )

    @property
    def _owner_is(self) -> str:
        if self.policy in _CONNECTION:
            return "connection"
        return "client-id" if self.policy == _CONTAINER else "user"

    def _who(self, queue_name: str, reader: Reader) -> str:
        if self.policy in _CONNECTION:
            return str(reader.connection)
        who = reader.client_id if self.policy == _CONTAINER else reader.user
        if who is None:
            needed = "client-id" if self.policy == _CONTAINER else "login"
            raise LimitError(
                f"Queue {queue_name} admits consumers of one {self._owner_is} only (exclusivity-policy "
                f"{self.policy}); send a {needed} header in CONNECT"
            )
        return who
