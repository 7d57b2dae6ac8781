"""A login service beside a clock that tests move, with its real threads, and authenticators that tests control."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from queue import SimpleQueue

from artemis_py.config.settings import BrokerConfig
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import Login, LoginCounts
from artemis_py.server.logins.login_service import LoginService

WAIT_S = 120.0
START_MS = 1_700_000_000_000
PEER = "192.0.2.1"


class Users:
    """An authenticator with passwords by user. It notes who asked, and can be made to wait or to fail."""

    def __init__(self, **passwords: str) -> None:
        self.passwords = passwords
        self.asked: list[Credentials] = []
        self.roles = frozenset({"amq"})
        self.expires_ms = 0
        self.failure: Exception | None = None
        self.may_answer = threading.Event()
        self.may_answer.set()

    def authenticate(self, credentials: Credentials) -> Identity | None:
        self.asked.append(credentials)
        assert self.may_answer.wait(WAIT_S), "the test never let the authenticator answer"
        if self.failure is not None:
            raise self.failure
        if credentials.user is None or self.passwords.get(credentials.user) != credentials.password:
            return None
        return Identity(credentials.user, self.roles, self.expires_ms)


@dataclass(eq=False)
class StillTime:
    """The loop of a login service: time passes when a test says so, and calls of threads run when a test waits."""

    now_ms: int = 0
    _later: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    _called: SimpleQueue[Callable[[], None]] = field(default_factory=SimpleQueue)

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        self._later.append((self.now_ms + round(delay * 1000), callback))

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        self._called.put(callback)

    def pass_by(self, time_ms: int) -> None:
        """Let time pass, and call what becomes due, in order."""
        end_ms = self.now_ms + time_ms
        while due := [each for each in self._later if each[0] <= end_ms]:
            first = min(due, key=lambda each: each[0])
            self._later.remove(first)
            self.now_ms = first[0]
            first[1]()
        self.now_ms = end_ms

    def run_one(self) -> None:
        """Wait for one call of a thread, and carry it out."""
        self._called.get(timeout=WAIT_S)()


class Stage:
    """One login service with everything around it."""

    def __init__(self, users: Users, *, cache_size: int = 1000, interval_ms: int = 10_000) -> None:
        self.users = users
        self.time = StillTime()
        self.counts = LoginCounts()
        self.complaints: list[tuple[str, str]] = []
        self.woken: list[str] = []
        config = replace(
            BrokerConfig(), authentication_cache_size=cache_size, security_invalidation_interval=interval_ms
        )
        self.logins = LoginService(
            users,
            config,
            self.time,
            steady_ms=lambda: self.time.now_ms,
            date_ms=lambda: START_MS + self.time.now_ms,
            warn=lambda line, kind, _user, _address, _acceptor: self.complaints.append((line, kind)),
            counts=self.counts,
        )

    def begin(self, user: str | None, password: str | None, peer: str = PEER, wake: str = "") -> Login:
        """Begin a login; ``wake`` is noted in ``woken`` when it is decided later."""
        return self.logins.begin(Credentials(user, password, peer=peer), lambda: self.woken.append(wake))

    def decide(self, login: Login) -> Login:
        """Wait until threads have decided it."""
        while not login.may_go_on:
            self.time.run_one()
        return login

    def log_in(self, user: str | None, password: str | None, peer: str = PEER) -> Login:
        """Log in and wait for the decision, as long as no pause is due."""
        return self.decide(self.begin(user, password, peer))

    def fail(self, count: int, peer: str = PEER) -> None:
        """Fail with so many different passwords, after all the pauses."""
        for number in range(count):
            login = self.begin("ann", f"wrong {number}", peer)
            self.time.pass_by(10_000)
            self.decide(login)
            assert login.refusal
