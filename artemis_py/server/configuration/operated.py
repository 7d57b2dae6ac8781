"""The configuration as operators reach it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, final

from artemis_py.management.lists.field import Row
from artemis_py.management.managed import Steps
from artemis_py.server.configuration.keeper import ConfigurationKeeper


@final
class OperatedConfiguration:
    """The ``Configuration`` of the operations."""

    __slots__ = ("_keeper",)

    def __init__(self, keeper: ConfigurationKeeper) -> None:
        self._keeper = keeper

    def reload(self) -> Steps:
        """Read it again and bring it into force."""
        return _waited_for(self._keeper.reload)

    def diff(self) -> Steps:
        """What that would change."""
        return _waited_for(self._keeper.diff)

    def show(self) -> Row:
        """What is in force, and what is wrong with the file as it is now."""
        return self._keeper.state.row()


def _waited_for(begin: Callable[[], asyncio.Task[dict[str, Any]]]) -> Steps:
    task = begin()
    if not task.done():
        yield task
    return task.result()
