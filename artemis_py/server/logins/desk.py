"""Decides logins: from memory at once, else in a thread, and later for peers that failed before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, final

from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import AuthenticatorError
from artemis_py.security.authenticator import Authenticator
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import Login
from artemis_py.security.users.reloaded import files_of
from artemis_py.server.logins.attempt import Attempt, Lines, Waiter
from artemis_py.server.logins.counts import BUSY, INVALID, SLOWED, UNAVAILABLE, LoginCounts
from artemis_py.server.logins.latest import LatestLogins
from artemis_py.server.logins.networks import network_of
from artemis_py.server.logins.remembered import Digests, Remembered
from artemis_py.server.logins.slowing import Slowing
from artemis_py.server.logins.workers import Workers

THREADS: Final = 4
"""How many logins are verified at a time. Hashes share what the turns leave of the processors; directories are waited
for.
"""
WAITING_MAX: Final = 1024
"""Attempts that wait for a thread; more are refused."""
WAITING_OF_ONE_MAX: Final = 256
"""Those of one peer."""
HELD_OF_ONE_MAX: Final = 16
"""Attempts of one peer that wait because of its failures. When there are so many, even right credentials are refused,
or else answers would come as fast as guesses.
"""
_USER_MAX: Final = 80


class Timing(Protocol):
    """The loop in whose thread the desk lives."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> object:
        """Call it after so many seconds."""

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> object:
        """Call it soon; may be asked by any thread. Raises RuntimeError if the loop is closed."""


@final
class Desk:
    """The ``LoginDesk`` of a server. ``steady_ms`` never goes back; ``date_ms`` is the date, for logins that end at
    one. ``complain`` writes a line to the log, seldom enough for its kind, about a user and a peer.

    Right and wrong credentials are remembered in tables of their own, so guesses do not displace those who work.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        config: BrokerConfig,
        timing: Timing,
        *,
        steady_ms: Callable[[], int],
        date_ms: Callable[[], int],
        complain: Callable[[str, str, str, str], None],
        counts: LoginCounts,
    ) -> None:
        self._counts = counts
        self.latest: Final = LatestLogins()
        self._authenticator = authenticator
        self._timing = timing
        self._steady_ms = steady_ms
        self._date_ms = date_ms
        self._complain = complain
        self._digests = Digests()
        size, lifetime_ms = config.authentication_cache_size, config.security_invalidation_interval
        self._right: Remembered[Identity] = Remembered(size, lifetime_ms)
        self._wrong: Remembered[bool] = Remembered(size, lifetime_ms)
        self._slowing = Slowing()
        self._held: dict[str, dict[bytes, Attempt]] = {}
        """Attempts by network that wait because of earlier failures."""
        self._under_way: dict[bytes, Attempt] = {}
        """Attempts that wait for a thread or are in one."""
        self._lines = Lines()
        self._workers = Workers(THREADS)
        self.on_change: Callable[[], None] | None = None
        """Called when others may log in than before."""
        self._running = 0
        self._begun: Login | None = None
        """The login that ``begin`` has not returned yet; nobody needs to be woken for it."""

    def begin(self, credentials: Credentials, wake: Callable[[], None]) -> Login:
        """Begin a login; see ``LoginDesk``."""
        login = self._begun = Login()
        peer, is_question = credentials.peer, credentials.is_question
        self._begin(credentials, Waiter(login, wake, peer, network_of(peer), is_question))
        self._begun = None
        return login

    def _begin(self, credentials: Credentials, waiter: Waiter) -> None:
        network = waiter.network
        held = self._held.get(network)
        if held is not None and len(held) >= HELD_OF_ONE_MAX:
            text = "Too many logins from your address wait because earlier ones failed; try again later"
            self._refuse(waiter, credentials, text, SLOWED)
            return
        digest, now_ms = self._digests.of(credentials), self._steady_ms()
        known = self._known(digest, now_ms)
        if known is not None:
            self._admit(waiter, known)
            return
        attempt = Attempt(credentials, digest, waiter)
        pause_ms = self._slowing.pause_ms(network, now_ms)
        if pause_ms > 0:
            self._hold(attempt, pause_ms)
        else:
            self._decide(attempt)

    def use(self, authenticator: Authenticator) -> None:
        """Somebody else decides from now on; what is remembered of logins is forgotten. Who is in stays."""
        self._authenticator = authenticator
        self.forget()
        if self.on_change is not None:
            self.on_change()

    @property
    def authenticator(self) -> Authenticator:
        """Who decides now."""
        return self._authenticator

    def complaints(self) -> list[str]:
        """What is wrong with files that say who may log in, and with which others are in force."""
        return [file.complaint for file in files_of(self._authenticator) if file.complaint]

    def forget(self) -> None:
        """Each login is verified again from now on."""
        self._right.clear()
        self._wrong.clear()

    def stop(self) -> None:
        """Verify nothing more."""
        self._workers.stop()

    # ---- waiting ---------------------------------------------------------------------------------

    def _hold(self, attempt: Attempt, pause_ms: int) -> None:
        """Let an attempt wait. It keeps its place to the end even if its client leaves, or leaving would be faster."""
        held = self._held.setdefault(attempt.network, {})
        same = held.get(attempt.digest)
        if same is not None:
            same.waiters += attempt.waiters
            return
        held[attempt.digest] = attempt
        self._counts.waiting += 1

        def release() -> None:
            del held[attempt.digest]
            if not held:
                del self._held[attempt.network]
            self._counts.waiting -= 1
            self._decide(attempt)

        self._timing.call_later(pause_ms / 1000, release)

    def _decide(self, attempt: Attempt) -> None:
        """Decide an attempt from memory, or send it to a thread."""
        digest, now_ms = attempt.digest, self._steady_ms()
        known = self._known(digest, now_ms)
        if known is not None or self._wrong.get(digest, now_ms):
            self._answer(attempt, known)
            return
        same = self._under_way.get(digest)
        if same is not None:
            same.waiters += attempt.waiters
            return
        if len(self._lines) >= WAITING_MAX or self._lines.length_of(attempt.network) >= WAITING_OF_ONE_MAX:
            for waiter in attempt.waiters:
                self._refuse(waiter, attempt.credentials, "Too many logins are waiting; try again later", BUSY)
            return
        self._under_way[digest] = attempt
        self._lines.add(attempt)
        self._counts.waiting += 1
        self._send_on()

    def _known(self, digest: bytes, now_ms: int) -> Identity | None:
        known = self._right.get(digest, now_ms)
        if known is not None and 0 < known.expires_ms <= self._date_ms():
            self._right.forget(digest)
            return None
        return known

    # ---- verifying -------------------------------------------------------------------------------

    def _send_on(self) -> None:
        """Give threads that are free the next attempts."""
        while self._running < THREADS and self._lines:
            attempt = self._lines.pop()
            if attempt.is_wanted:
                self._running += 1
                self._counts.verified += 1
                self._workers.run(lambda attempt=attempt: self._verify(attempt))  # type: ignore[misc]
            else:
                self._forget(attempt)

    def _verify(self, attempt: Attempt) -> None:
        """In a thread: ask the authenticator."""
        identity: Identity | None = None
        failure = ""
        try:
            identity = self._authenticator.authenticate(attempt.credentials)
        except AuthenticatorError as error:
            failure = str(error)
        except Exception as error:  # its text may contain what was given to log in
            failure = f"{type(self._authenticator).__name__} failed with {_place(error)}"
        try:
            self._timing.call_soon_threadsafe(lambda: self._verified(attempt, identity, failure))
        except RuntimeError:
            return  # the broker has stopped

    def _verified(self, attempt: Attempt, identity: Identity | None, failure: str) -> None:
        self._running -= 1
        self._forget(attempt)
        if failure:
            for waiter in attempt.waiters:
                text = "The broker cannot check logins now; try again later"
                self._refuse(waiter, attempt.credentials, text, UNAVAILABLE, failure)
        else:
            now_ms = self._steady_ms()
            if identity is None:
                self._wrong.put(attempt.digest, True, now_ms)
            else:
                self._right.put(attempt.digest, identity, now_ms)
            self._answer(attempt, identity)
        self._send_on()

    def _forget(self, attempt: Attempt) -> None:
        del self._under_way[attempt.digest]
        self._counts.waiting -= 1

    # ---- answers ---------------------------------------------------------------------------------

    def _answer(self, attempt: Attempt, identity: Identity | None) -> None:
        """It is known who this is; None: the credentials are wrong."""
        now_ms = self._steady_ms()
        for waiter in attempt.waiters:
            if identity is not None:
                self._admit(waiter, identity)
            else:
                if not waiter.is_question:
                    self._slowing.failed(waiter.network, attempt.digest, now_ms)
                self._refuse(waiter, attempt.credentials, "User name or password is invalid", INVALID)

    def _admit(self, waiter: Waiter, identity: Identity) -> None:
        self._counts.successes += 1
        self.latest.note(identity.user, self._date_ms())
        waiter.login.identity = identity
        self._wake(waiter)

    def _refuse(self, waiter: Waiter, credentials: Credentials, text: str, reason: str, told: str = "") -> None:
        """Refuse a client with ``text``; the log is ``told`` why, or the same."""
        login = waiter.login
        login.refusal = text
        login.is_open = reason != INVALID
        if not waiter.is_question or login.is_open:
            self._tell(waiter, credentials, told or text, reason)
        self._wake(waiter)

    def _tell(self, waiter: Waiter, credentials: Credentials, why: str, reason: str) -> None:
        self._counts.failures += 1
        self._counts.refusals[reason] += 1
        user = credentials.user
        who = "without a name" if user is None else f"of {user[:_USER_MAX]!r}"
        line = f"warning: login {who} from {waiter.peer or 'an unknown address'}: {why}"
        self._complain(line, f"login {reason}", (user or "")[:_USER_MAX], waiter.peer)

    def _wake(self, waiter: Waiter) -> None:
        if waiter.login is not self._begun:
            waiter.wake()


def _place(error: Exception) -> str:
    """The type of an error and where it was raised, without its text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__}{at}"
