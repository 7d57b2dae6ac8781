"""A connection that is made again and again, of clients of stompman.

stompman's client connects again by itself, but not for long; it does not leave a broker that has gone silent; it
forgets a subscription whose second beginning is not confirmed; and it does not tell its user, whose tasks are somebody
else's now. So a client here has one connection, and one task makes client after client.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self

from stompman import (
    Client,
    ConnectionParameters,
    FailedAllConnectAttemptsError,
    Heartbeat,
    UnsupportedProtocolVersion,
)
from stompman.connection import Connection as StompmanConnection
from stompman.errors import AllServersUnavailable

from artemis_py_tasks.errors import RefusedError, TasksError

logger: Final = logging.getLogger("artemis_py_tasks")

_PAUSE_S: Final = 1.0
_LOGIN_S: Final = 5


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to reach the broker, and how long to wait for it."""

    servers: Sequence[ConnectionParameters]
    """Of several that one is used which answers first: a broker and its stand-by."""
    ssl: Literal[True] | ssl.SSLContext | None = None
    answer_s: float = 30.0
    """How long the broker may take to confirm something; connections that are made anew meanwhile count."""
    heartbeat_s: float = 30.0
    """How often each side lets the other hear from it. Who is silent for two or three times as long is given up."""

    @property
    def names(self) -> str:
        """The brokers, for messages to people."""
        return ", ".join(f"{server.host}:{server.port}" for server in self.servers)


class LostError(TasksError):
    """A client is of no more use. Another one may be."""


class OneConnection(StompmanConnection):
    """A connection that a client makes only if it ``may_connect``; a subclass is for one client."""

    may_connect: ClassVar[bool]
    problem: ClassVar[str]
    """Of what stompman does not expect, such as a certificate that is not trusted, or no route."""

    @classmethod
    async def connect(cls, **where: Any) -> Self | None:
        """See stompman. None: there is no connection."""
        try:
            return await super().connect(**where) if cls.may_connect else None
        except OSError as error:
            cls.problem = str(error)
            return None


class Connection:
    """A client of stompman, or the time between two. It belongs to the event loop in which it is opened."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.trouble = "not connected yet"
        """Why there is no client, in words."""
        self._client: Client | None = None
        self._client_changed = asyncio.Event()
        self._woken = asyncio.Event()
        """Whoever stays with the client has something to do: ``_is_closing``, or ``_fault``."""
        self._fault: LostError | None = None
        """Why the client there is has to be left."""
        self._refusal: RefusedError | None = None
        """What ``_begin`` asks for is refused. No other client would fare better."""
        self._is_closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to connect; while no broker is there, again and again."""
        assert self._owner is None, "it is open already"
        self._owner = asyncio.create_task(self._own())

    async def close(self) -> None:
        """End it. What a consumer has not acknowledged goes back, without counting as a failed delivery."""
        self._is_closing.set()
        self._woken.set()
        if self._owner is not None:
            if self._client is None:
                self._owner.cancel()  # it is connecting, or waits to do so
            await asyncio.wait({self._owner})

    async def _begin(self, client: Client) -> None:
        """What is done with a new client before others use it."""

    async def _finish(self) -> None:
        """What is done with a client before it leaves the broker in peace."""

    def _let_go(self) -> None:
        """What came over this client is no longer ours."""

    def _refused(self) -> None:
        """There will be no client: see ``_refusal``."""

    def _leave(self, client: Client, fault: LostError) -> None:
        """Let another client take its place."""
        if client is self._client:
            self._fault = fault
            self._woken.set()

    async def _client_until(self, deadline_s: float) -> Client:
        """The client, as soon as there is one. Raises TimeoutError."""
        async with asyncio.timeout_at(deadline_s):
            while self._client is None:
                self._client_changed.clear()
                await self._client_changed.wait()
            return self._client

    async def _own(self) -> None:
        """Make one client after another."""
        me = asyncio.current_task()
        while not self._is_closing.is_set():
            try:
                await self._serve()
            except BaseException as error:
                if self._refusal is not None:  # what is raised may be that the broker then closed the connection
                    self._refused()
                    return
                if not isinstance(error, Exception | BaseExceptionGroup) and (me is None or me.cancelling()):
                    raise
                if (trouble := _in_words(error)) != self.trouble:
                    self.trouble = trouble
                    logger.warning("%s: %s; trying until it works", self.options.names, trouble)
                await asyncio.sleep(_PAUSE_S)

    async def _serve(self) -> None:
        """Make a client, and use it to its end."""
        options = self.options
        beat_ms = int(options.heartbeat_s * 1000)

        class ThisConnection(OneConnection):
            may_connect = True
            problem = ""

        client = Client(
            list(options.servers),
            ssl=options.ssl,
            heartbeat=Heartbeat(beat_ms, beat_ms),
            connect_retry_attempts=1,
            connect_retry_interval=0,
            write_retry_attempts=1,
            connection_class=ThisConnection,
            connection_confirmation_timeout=_LOGIN_S,
            disconnect_confirmation_timeout=1,
            no_message_restart_interval=None,  # who has one long task, or none, keeps the connection
            max_concurrent_handlers=None,  # they only note what came; SUBSCRIBE says how much may come
            on_error_frame=None,  # who is concerned raises it
        )
        try:
            async with client:
                ThisConnection.may_connect = False
                await self._use(client)
        except FailedAllConnectAttemptsError:
            if ThisConnection.problem:
                raise LostError(ThisConnection.problem) from None
            raise
        except BaseExceptionGroup as errors:  # the client's own tasks have failed
            raise LostError("the connection was lost") from errors

    async def _use(self, client: Client) -> None:
        """Stay with a client to its end. Raises LostError."""
        try:
            await self._begin(client)
            logger.info("%s: connected", self.options.names)
            self.trouble = ""
            self._set_client(client)
            while not self._is_closing.is_set():
                self._woken.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), self.options.heartbeat_s)
                if self._fault is not None:
                    raise self._fault
                if not self._is_closing.is_set() and not client.is_alive():
                    raise LostError("the broker has gone silent")
        finally:
            self._set_client(None)
            self._let_go()
        await self._finish()

    def _set_client(self, client: Client | None) -> None:
        self._client = client
        self._fault = None
        self._client_changed.set()


def _in_words(error: BaseException) -> str:
    """What has happened to a client."""
    if isinstance(error, FailedAllConnectAttemptsError):
        issue = error.issues[-1] if error.issues else None
        if isinstance(issue, AllServersUnavailable):
            return "no broker answers there"
        if isinstance(issue, UnsupportedProtocolVersion):
            return f"the broker speaks STOMP {issue.given_version}, not {issue.supported_version}"
        return "the broker does not accept the login, or is stopping"
    return str(error) or type(error).__name__
