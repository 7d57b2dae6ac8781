"""A login service beside a clock that tests move, with its real threads, and authenticators that tests control."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from types import SimpleNamespace

from artemis_py.config.settings import BrokerConfig
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import Login, LoginCounts
from artemis_py.server.logins.login_service import LoginService
from tests.kit.fake_loop import FakeLoop

WAIT_S = 120.0
START_MS = 1_700_000_000_000
PEER = "192.0.2.1"


@dataclass(eq=False)
class Users:
    """An authenticator with passwords by user. It notes who asked, and can be made to wait or to fail."""

    passwords: dict[str, str]
    asked: list[Credentials] = field(default_factory=list)
    roles: frozenset[str] = frozenset({"amq"})
    expires_ms: int = 0
    failure: Exception | None = None
    may_answer: threading.Event = field(default_factory=threading.Event)

    def authenticate(self, credentials: Credentials) -> Identity | None:
        self.asked.append(credentials)
        assert self.may_answer.wait(WAIT_S), "the test never let the authenticator answer"
        if self.failure is not None:
            raise self.failure
        if credentials.user is None or self.passwords.get(credentials.user) != credentials.password:
            return None
        return Identity(credentials.user, self.roles, self.expires_ms)


class Stage:
    """One login service with everything around it: time passes when a test says so, and what threads call back runs
    when a test waits for it.
    """

    def __init__(self, users: Users, *, cache_size: int = 1000, interval_ms: int = 10_000) -> None:
        self.users = users
        self.time = FakeLoop(0)
        self.called: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.counts = LoginCounts()
        self.complaints: list[tuple[str, str]] = []
        self.woken: list[str] = []
        config = replace(
            BrokerConfig(), authentication_cache_size=cache_size, security_invalidation_interval=interval_ms
        )
        self.logins = LoginService(
            users,
            config,
            SimpleNamespace(call_later=self.time.call_later, call_soon_threadsafe=self.called.put),
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
            self.run_one()
        return login

    def run_one(self) -> None:
        """Wait for one call of a thread, and carry it out."""
        self.called.get(timeout=WAIT_S)()

    def log_in(self, user: str | None, password: str | None, peer: str = PEER) -> Login:
        """Log in and wait for the decision, as long as no pause is due."""
        return self.decide(self.begin(user, password, peer))

    def fail(self, count: int, peer: str = PEER) -> None:
        """Fail with so many different passwords, after all the pauses."""
        for number in range(count):
            login = self.begin("ann", f"wrong {number}", peer)
            self.time.advance(10_000)
            self.decide(login)
            assert login.refusal
