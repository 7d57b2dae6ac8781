"""Asks a broker over HTTP what it has, and has it make the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, final
from urllib.parse import quote

from artemis_py.cli.broker_http import BrokerHttp, RefusedError
from artemis_py.errors import ArtemisError

_PATHS: Final = {"queue": "/api/queues", "address": "/api/addresses"}


class UnmanageableError(ArtemisError):
    """The user may not even see what there is."""


@final
class Manager:
    """What changes something returns why it was not done; empty: it was. Raises UnmanageableError, and ArtemisError if
    the broker does not answer.
    """

    def __init__(self, broker: BrokerHttp) -> None:
        self._broker = broker
        try:
            self.addresses = {row["name"] for row in self._rows("/api/addresses?fields=name&page=-1&size=-1")}
            """Those that are there."""
            rows = self._rows("/api/queues?fields=name,address&page=-1&size=-1")
        except RefusedError as error:
            raise UnmanageableError(str(error)) from None
        self.queues = {row["name"]: row["address"] for row in rows}
        """Those that are there, with their addresses."""

    def _rows(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._broker.ask(path))["data"]
        return found

    def make(self, kind: str, arguments: Mapping[str, object]) -> str:
        """Make a ``queue`` or an ``address`` with the arguments of the operation that creates one."""
        return self._asked(_PATHS[kind], arguments)

    def change(self, resource: str, word: str) -> str:
        """Carry out an operation such as ``pause`` on a resource: ``queue.NAME`` or ``address.NAME``."""
        kind, _, name = resource.partition(".")
        return self._asked(f"{_PATHS[kind]}/{quote(name, safe='')}/{word}", None)

    def _asked(self, path: str, arguments: Mapping[str, object] | None) -> str:
        try:
            self._broker.ask(path, "POST", None if arguments is None else json.dumps(arguments).encode())
        except RefusedError as error:
            return str(error)
        return ""
