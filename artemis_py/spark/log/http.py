"""A log from a running broker's HTTP acceptor: ``GET /log``, ranges of segments and bodies, and cursors. Of a broker
and its stand-bys, which share one log, the one that answers is asked.
"""

from __future__ import annotations

import json
import socket
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

from artemis_py.client.http_connection import HttpConnection, UnansweredError, is_success
from artemis_py.errors import PipelineError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls
from artemis_py.spark.log.indexes import Indexes, uncollected
from artemis_py.spark.log.log import (
    AwayError,
    GoneError,
    Identity,
    Listing,
    Log,
    LogLocation,
    Segment,
    unreadable,
    warn_of_new_name,
)
from artemis_py.spark.shared_options import NAMED

_STAND_BY: Final = "|"
"""Joins the URLs of a broker and its stand-bys."""
_END: Final = (1 << 63) - 1
"""An lsn above which there is nothing: a listing without segments."""
_CONNECT_S: Final = 10.0
"""So long a machine without power keeps readers from the stand-by; one whose broker is down refuses at once."""
_ANSWER_S: Final = 30.0
_BRIEF_ANSWER_S: Final = 2.0
_PAUSE_S: Final = 0.1
_NOT_FOUND: Final = 404
_GONE: Final = frozenset({404, 410})
_OUT_OF_RANGE: Final = 416
"""The range is past the end: the file is shorter than its index says, as if it was truncated."""
_BUSY: Final = frozenset({429, 502, 503, 504})


def urls_of(url: str) -> list[str]:
    """Those of a broker and its stand-bys, in the order in which they are to be asked."""
    return list(dict.fromkeys(one.strip() for one in url.split(_STAND_BY)))


@dataclass(frozen=True, slots=True)
class Broker(LogLocation):
    """A broker by the URL of its HTTP acceptor, and of those of its stand-bys: ``http://one:8161|http://two:8161``."""

    url: str
    login: ClientLogin
    tls: ClientTls | None
    """For a URL with https."""
    wait_s: int
    fails_on_loss: bool = True
    key: str | None = None
    """By which a query knows the log; None: by the name that the broker gives itself."""
    log_id: str | None = None
    """The log's, where it was asked before."""

    def open(self) -> HttpLog:
        return HttpLog(self)

    def known_as(self, key: str) -> Broker:
        return replace(self, key=key)

    def __str__(self) -> str:
        return self.url


class HttpLog(Log):
    """Keeps its connections. If a broker does not answer, because it restarts, it is asked again for ``wait_s``
    seconds, in turn with its stand-bys, which say that they wait.
    """

    def __init__(self, location: Broker, reader: str = "spark") -> None:
        """``reader``: what it is, for those who look at its cursors."""
        self._location = location
        self._wait_s = float(location.wait_s)
        connect_s = min(_CONNECT_S, self._wait_s)
        self._https = deque(
            HttpConnection(url, location.login, location.tls, _ANSWER_S, NAMED, stays_open=True, connect_s=connect_s)
            for url in urls_of(location.url)
        )
        """The broker, and its stand-bys; the first is asked next."""
        self._known = self._https[0]
        """The one that had the log when it was last asked."""
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

    @property
    def location(self) -> Broker:
        """The broker that answered last is the first to be asked there."""
        url = _STAND_BY.join(http.url for http in self._https)
        return replace(self._location, url=url, key=self.broker, log_id=self._log_id)

    @property
    def _log_id(self) -> str | None:
        return self._location.log_id if self._identity is None else self._identity.log_id

    def identity(self) -> Identity:
        if self._identity is None:
            self._ask_listing(after_lsn=_END)
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
                f"of {told.broker}, in which offsets mean something else. Start the query again: its checkpoint knows "
                "each log by its id"
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
        problems: dict[str, str] = {}
        while True:
            http = self._https[0]
            try:
                status, answer = self._answer(http, method, path, headers, body)
                if status not in _BUSY:
                    break
                problems[http.url] = _said_later(status, answer)
            except UnansweredError as error:
                if error.is_final:
                    raise PipelineError(str(error)) from None
                problems[http.url] = error.reason
            self._https.rotate(-1)
            if len(problems) < len(self._https):
                continue
            if time.monotonic() >= until:
                raise self._away(problems)
            if self._https[0].url == next(iter(problems)):  # all were asked
                time.sleep(_PAUSE_S)
        if status in else_empty:
            return b""
        if not is_success(status):
            raise self._refused(status, f"{http.url}{path}", answer)
        return answer

    def _answer(
        self, http: HttpConnection, method: str, path: str, headers: Mapping[str, str] | None, body: bytes | None
    ) -> tuple[int, bytes]:
        """The answer of one of the brokers. Raises PipelineError if it has another log than the others had."""
        if http is not self._known and self._log_id is not None:
            where = f"/log?after_lsn={_END}"
            status, answer = http.answer("GET", where)
            if status in _BUSY:
                return status, answer
            if not is_success(status):
                raise self._refused(status, f"{http.url}{where}", answer)
            found = json.loads(answer)["id"]
            if found != self._log_id:
                raise PipelineError(
                    f"{http.url} has the log {found}, but {self._known.url} had {self._log_id}: one is no stand-by of "
                    f"the other. In option url, {_STAND_BY} joins a broker and its stand-by, which share one journal, "
                    "and a comma separates brokers"
                )
        status, answer = http.answer(method, path, headers, body)
        if is_success(status):
            self._known = http
        return status, answer

    def _away(self, problems: Mapping[str, str]) -> AwayError:
        url = self._location.url
        told = "; ".join(f"{one}: {why}" if len(problems) > 1 else why for one, why in problems.items())
        advice = "is it running, and does it have an acceptor with protocols=HTTP there?"
        if told.startswith(_WAITS):
            advice = f"name it behind its broker, as in url=http://broker:8161{_STAND_BY}{url}"
        return AwayError(f"the broker at {url} did not answer for {self._location.wait_s} s ({told}): {advice}")

    def close(self) -> None:
        for http in self._https:
            http.close()

    def wait_briefly(self) -> None:
        self._wait(0.0, _BRIEF_ANSWER_S)

    def wait_patiently(self) -> None:
        self._wait(float(self._location.wait_s), _ANSWER_S)

    def _wait(self, wait_s: float, answer_s: float) -> None:
        self._wait_s = wait_s
        for http in self._https:
            http.timeout_s = answer_s
        self.close()

    def _refused(self, status: int, where: str, answer: bytes) -> PipelineError:
        said = answer[:300].decode("utf-8", "replace").strip()
        login = self._location.login
        if status == 401 and login.is_empty:
            return PipelineError(f"{where}: the broker wants a login; give options user and passwordFile ({said})")
        if status == 401:
            told = "token, tokenFile" if login.token is not None else "user, password, passwordFile"
            return PipelineError(f"{where}: the broker refuses {login} of options {told} ({said})")
        if status == 403:
            return PipelineError(f"{where}: the broker forbids this to {login}: {said}")
        if status in _GONE and ("/log/segments/" in where or "/log/bodies/" in where):
            return GoneError(f"{where} no longer exists: retention has removed it ({said})")
        if status == 404 and "persistence-enabled" in said:
            said += "; set it to true, and name a journal-retention-directory"
        return PipelineError(f"{where}: the broker answers with status {status}: {said}")


_WAITS: Final = "stand-by: "
"""So begins what a broker says that waits for another one (``server/standby.py``)."""


def _said_later(status: int, answer: bytes) -> str:
    """Why a broker does not answer yet."""
    try:
        said = str(json.loads(answer)["error"])
    except (ValueError, TypeError, KeyError):
        said = ""
    return said if said.startswith(_WAITS) else f"it answers with status {status}"
