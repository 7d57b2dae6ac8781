"""A log from a running broker's HTTP acceptor: ``GET /log``, ranges of segments and bodies, and cursors."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

from artemis_py.client.http_connection import HttpConnection, UnansweredError, is_success
from artemis_py.errors import PipelineError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls
from artemis_py.spark.log.identity import Identity, warn_of_new_name
from artemis_py.spark.log.indexes import Indexes, uncollected
from artemis_py.spark.log.log import AwayError, GoneError, Listing, Log, LogLocation, Segment, unreadable
from artemis_py.spark.shared_options import NAMED

_ANSWER_S: Final = 30.0
_BRIEF_ANSWER_S: Final = 2.0
_PAUSE_S: Final = 0.1
_NOT_FOUND: Final = 404
_GONE: Final = frozenset({404, 410})
_OUT_OF_RANGE: Final = 416
"""The range is past the end: the file is shorter than its index says, as if it was truncated."""
_BUSY: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Broker(LogLocation):
    """A broker by the URL of its HTTP acceptor."""

    url: str
    login: ClientLogin
    tls: ClientTls | None
    """For a URL with https."""
    wait_s: int
    fails_on_loss: bool = True
    key: str | None = None
    """By which a query knows the log; None: by the name that the broker gives itself."""

    def open(self) -> HttpLog:
        return HttpLog(self)

    def known_as(self, key: str) -> Broker:
        return replace(self, key=key)

    def __str__(self) -> str:
        return self.url


class HttpLog(Log):
    """Keeps one connection. If a broker does not answer, because it restarts, it is asked again for ``wait_s``
    seconds.
    """

    def __init__(self, location: Broker, reader: str = "spark") -> None:
        """``reader``: what it is, for those who look at its cursors."""
        self._location = location
        self._wait_s = float(location.wait_s)
        self._http = HttpConnection(location.url, location.login, location.tls, _ANSWER_S, NAMED, stays_open=True)
        self._identity: Identity | None = None
        self._owner = f"{reader} on {socket.gethostname()} ({uuid4().hex[:12]})"
        """Unique for each reader, to detect two readers that move one cursor."""
        self._indexes = Indexes()
        self._cursors: set[str] = set()
        """Cursors that this reader has moved."""
        self._renamed: str | None = None
        """The broker's name now, where it was another one before."""

    @property
    def broker(self) -> str:  # type: ignore[override]  # known when first asked for
        """The query's key for the log, else the name that the broker gives itself."""
        return self._location.key or self.identity().broker

    def identity(self) -> Identity:
        if self._identity is None:
            self._ask_listing(after_lsn=(1 << 63) - 1)
        assert self._identity is not None
        return self._identity

    def listing(self, after_lsn: int = 0) -> Listing:
        fields = self._ask_listing(after_lsn)
        segments: list[Segment] = []
        for one in fields["segments"]:
            if "error" in one:
                unreadable(one["name"], one["error"], fails_on_loss=self._location.fails_on_loss)
            else:
                segments.append(self._indexes.segment(one))
        return Listing(fields["first_lsn"], fields["durable_lsn"], segments, fields["id"], fields["now_ms"])

    def _ask_listing(self, after_lsn: int) -> dict[str, Any]:
        answer = self._ask("GET", f"/log?after_lsn={after_lsn}")
        with uncollected():
            fields = self._indexes.listed(answer)
        self._note(Identity(fields["broker"], fields["id"]))
        return fields

    def _note(self, told: Identity) -> None:
        """The log stays the one that it was. Its broker may get another name: the query goes on with the first one."""
        known = self._identity = self._identity or told
        if told == known:
            return
        if told.log_id is None or told.log_id != known.log_id:
            raise PipelineError(
                f"{self._location.url} had the log {known.log_id} of broker {known.broker} and now has {told.log_id} "
                f"of {told.broker}. Its offsets mean something else, so start a new query"
            )
        if told.broker != self._renamed:
            self._renamed = told.broker
            warn_of_new_name(self.broker, told)

    def read(self, segment: int, begin: int, end: int, name: str = "") -> bytes:
        del name  # the broker knows
        if begin >= end:
            return b""
        path = f"/log/segments/{segment}"
        return self._ask("GET", path, {"Range": f"bytes={begin}-{end - 1}"}, else_empty=(_OUT_OF_RANGE,))

    def places(self, segment: int, name: str = "") -> bytes:
        del name
        return self._ask("GET", f"/log/segments/{segment}/places", else_empty=tuple(_GONE))

    def body(self, number: int, size_bytes: int) -> bytes:
        found = self._ask("GET", f"/log/bodies/{number}")
        if len(found) != size_bytes:
            raise GoneError(f"the large body {number} of {self._location.url} has {len(found)} bytes, not {size_bytes}")
        return found

    def cursor(self, name: str) -> int | None:
        """The lsn of a cursor; None if there is none."""
        told = self._ask("GET", f"/log/cursors/{quote(name, safe='')}", else_empty=(_NOT_FOUND,))
        return json.loads(told)["lsn"] if told else None

    def set_cursor(self, name: str, lsn: int, ttl_s: int) -> None:
        path = f"/log/cursors/{quote(name, safe='')}"
        if name in self._cursors:
            self._check_cursor(name, path)
        said = json.dumps({"lsn": lsn, "owner": self._owner, "ttl_s": ttl_s}).encode()
        self._ask("PUT", path, {"Content-Type": "application/json"}, said)
        self._cursors.add(name)

    def _check_cursor(self, name: str, path: str) -> None:
        """Has anybody else moved a cursor since this reader did? Raises PipelineError. One that was dropped is made
        again.
        """
        told = self._ask("GET", path, else_empty=(_NOT_FOUND,))
        owner = json.loads(told)["owner"] if told else self._owner
        if owner != self._owner:
            raise PipelineError(
                f"cursor {name} of {self._location.url} is moved by two queries, {self._owner} and {owner}: the broker "
                "may drop what one has read before the other reads it. Give each its own name with option cursor"
            )

    def _ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        else_empty: tuple[int, ...] = (),
    ) -> bytes:
        until = time.monotonic() + self._wait_s
        while True:
            try:
                status, answer = self._http.answer(method, path, headers, body)
                if status not in _BUSY:
                    break
                problem = f"it answers with status {status}"
            except UnansweredError as error:
                if error.is_final:
                    raise PipelineError(str(error)) from None
                problem = error.reason
            if time.monotonic() >= until:
                raise AwayError(
                    f"the broker at {self._location.url} did not answer for {self._location.wait_s} s ({problem}): is "
                    "it running, and does it have an acceptor with protocols=HTTP there?"
                )
            time.sleep(_PAUSE_S)
        if status in else_empty:
            return b""
        if not is_success(status):
            raise self._refused(status, path, answer)
        return answer

    def close(self) -> None:
        self._http.close()

    def wait_briefly(self) -> None:
        self._wait_s, self._http.timeout_s = 0.0, _BRIEF_ANSWER_S
        self.close()

    def wait_patiently(self) -> None:
        self._wait_s, self._http.timeout_s = float(self._location.wait_s), _ANSWER_S
        self.close()

    def _refused(self, status: int, path: str, answer: bytes) -> PipelineError:
        said = answer[:300].decode("utf-8", "replace").strip()
        where = f"{self._location.url}{path}"
        login = self._location.login
        if status == 401 and login.is_empty:
            return PipelineError(f"{where}: the broker wants a login; give options user and passwordFile ({said})")
        if status == 401:
            told = "token, tokenFile" if login.token is not None else "user, password, passwordFile"
            return PipelineError(f"{where}: the broker refuses {login} of options {told} ({said})")
        if status == 403:
            return PipelineError(f"{where}: the broker forbids this to {login}: {said}")
        if status in _GONE and path.startswith(("/log/segments/", "/log/bodies/")):
            return GoneError(f"{where} no longer exists: retention has removed it ({said})")
        if status == 404 and "persistence-enabled" in said:
            said += "; set it to true, and name a journal-retention-directory"
        return PipelineError(f"{where}: the broker answers with status {status}: {said}")
