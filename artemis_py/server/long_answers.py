"""Answers that go on for long end with the right to them: those of HTTP, and subscriptions that only read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any, Final, final

from artemis_py.server.client import Client
from artemis_py.server.isolation import Isolation

_CLIENTS_PER_STEP: Final = 16


@final
class LongAnswers:
    """Whoever notices that rights or users have changed has everything asked again here. For the event loop's thread;
    ``ask_http`` does it for the answers of HTTP, ``carry_out`` makes steps inside turns.
    """

    def __init__(
        self,
        ask_http: Callable[[Set[str]], None],
        clients: Iterable[Client],
        isolation: Isolation,
        carry_out: Callable[[Iterator[bool | None]], asyncio.Future[Any]],
    ) -> None:
        self._ask_http = ask_http
        self._clients = clients
        self._isolation = isolation
        self._carry_out = carry_out

    def ask_again(self, users: Set[str] = frozenset()) -> asyncio.Future[Any]:
        """Rights have changed, or what is known of these users: an answer ends if its user may not have it any more.
        Returns what ``carry_out`` does: when that is done, no subscription goes on that may not.
        """
        self._ask_http(users)
        return self._carry_out(self._end_readers(users))

    def _end_readers(self, users: Set[str]) -> Iterator[bool | None]:
        """A reader reads on for as long as its client wants. Who consumes a queue goes on, as in Artemis."""
        for looked_at, client in enumerate(list(self._clients), 1):
            try:
                reason = client.session.subscriptions.ask_again(users)
                if reason:
                    client.dismiss(reason, self._isolation.turn_ms)
            except Exception as error:
                self._isolation.cut_off(client, "rights", error)
            if looked_at % _CLIENTS_PER_STEP == 0:
                yield None
        yield None
