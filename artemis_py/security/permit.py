"""What a client means to do with a destination: asked before anything is created for it, so that nothing is created for
somebody who may not use it.
"""

from __future__ import annotations

from typing import final

from artemis_py.security.rights import Rights


@final
class Permit:
    """Asks for the permissions in Artemis' order: to create an address, to create a queue, to use them.

    ``permission`` is the last of these: ``send``, ``consume`` or ``browse``. Every method raises NotAllowedError.
    """

    __slots__ = ("_permission", "_rights")

    def __init__(self, rights: Rights, permission: str) -> None:
        self._rights = rights
        self._permission = permission

    def to_create_address(self, address: str) -> None:
        """May the address be created for this client?"""
        self._rights.demand("createAddress", address)

    def to_create_queue(self, address: str, queue: str, *, durable: bool) -> None:
        """May the queue be created for this client?"""
        self._rights.demand("createDurableQueue" if durable else "createNonDurableQueue", address, queue)

    def to_use(self, address: str, queue: str | None, *, in_full: bool = False) -> None:
        """May the client send to or read from it? A sender names a queue only by a fully qualified name; ``in_full``
        says whether a consumer does.
        """
        if self._permission == "send":
            self._rights.demand_send(address, queue)
        else:
            self._rights.demand(self._permission, address, queue, in_full=in_full)
