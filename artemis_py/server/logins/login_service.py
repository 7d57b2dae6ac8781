"""Checks logins in threads: caches results, throttles whoever guesses passwords, and limits how long logins wait."""

from __future__ import annotations

import hmac
import os
import secrets
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Final, Generic, NamedTuple, Protocol, TypeVar, final

from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import AuthenticatorError, CredentialsRefusedError, NotYetError
from artemis_py.security.identity import Authenticator, Credentials, Identity
from artemis_py.security.login import BUSY, INVALID, SLOWED, UNAVAILABLE, WRONG, Login, LoginCounts
from artemis_py.security.users.reloaded import fetched_keys_of, files_of
from artemis_py.server.logins.networks import network_of

# ---- attempt ---------------------------------------------------------------------------------------------------------
#
# A verification that somebody waits for, and the line in which it waits.


class Waiter(NamedTuple):
    """A client that waits for an attempt; ``address`` is its own as host:port, ``network`` the one it counts for."""

    login: Login
    wake: Callable[[], None]
    address: str
    acceptor: str
    network: str
    is_question: bool = False
    """Has it only asked whether it must log in?"""


@final
class Attempt:
    """Credentials to be verified once for all who gave the same."""

    __slots__ = ("asked_count", "credentials", "digest", "network", "since_ms", "waiters")

    def __init__(self, credentials: Credentials, digest: bytes, waiter: Waiter) -> None:
        self.credentials = credentials
        self.digest = digest
        self.network = waiter.network
        """In whose line it waits."""
        self.asked_count = 0
        """How often it could not be found out yet."""
        self.since_ms = 0
        """Since when it is in line, in steady ms."""
        self.waiters = [waiter]

    @property
    def is_wanted(self) -> bool:
        """Does anybody still wait for it?"""
        return any(not waiter.login.is_given_up for waiter in self.waiters)


@final
class WaitingLogins:
    """Attempts that wait for a thread. Each network has its line, and lines take turns: none delays the others."""

    __slots__ = ("_aside", "_count", "_lines")

    def __init__(self) -> None:
        self._lines: dict[str, deque[Attempt]] = {}
        self._count = 0
        self._aside: dict[str, int] = {}
        """How many of each network are not in line, but will come back to it."""

    def __len__(self) -> int:
        return self._count

    @property
    def has_next(self) -> bool:
        """Is anybody in line?"""
        return bool(self._lines)

    def length_of(self, network: str) -> int:
        """How many attempts of a network wait."""
        line = self._lines.get(network)
        return (0 if line is None else len(line)) + self._aside.get(network, 0)

    def step_aside(self, network: str) -> None:
        """An attempt waits beside its line: nothing could be found out yet."""
        self._aside[network] = self._aside.get(network, 0) + 1
        self._count += 1

    def come_back(self, network: str) -> None:
        """One of those does not wait there any more."""
        self._count -= 1
        self._aside[network] -= 1
        if not self._aside[network]:
            del self._aside[network]

    def add(self, attempt: Attempt, now_ms: int) -> None:
        """Wait at the end of its network's line."""
        attempt.since_ms = now_ms
        self._lines.setdefault(attempt.network, deque()).append(attempt)
        self._count += 1

    def pop(self) -> Attempt:
        """The next attempt; there must be one."""
        network = next(iter(self._lines))
        line = self._lines.pop(network)
        attempt = line.popleft()
        if line:
            self._lines[network] = line
        self._count -= 1
        return attempt

    def take_late(self, before_ms: int) -> list[Attempt]:
        """Those that are in line since this time, or longer; they are not any more."""
        late: list[Attempt] = []
        for network, line in list(self._lines.items()):
            while line and line[0].since_ms <= before_ms:
                late.append(line.popleft())
            if not line:
                del self._lines[network]
        self._count -= len(late)
        return late


# ---- latest ----------------------------------------------------------------------------------------------------------
#
# When each user was let in last.


USERS_MAX: Final = 10_000
"""Beyond it the one whose login is the oldest is forgotten: with tokens and directories, others choose the names."""
_NAME_MAX: Final = 256


@final
class LatestLogins:
    """The dates since the start, in epoch ms."""

    __slots__ = ("_dates",)

    def __init__(self) -> None:
        self._dates: OrderedDict[str, int] = OrderedDict()

    def note(self, user: str, date_ms: int) -> None:
        """The user was let in now. Very long names are not kept."""
        if len(user) > _NAME_MAX:
            return
        self._dates[user] = date_ms
        self._dates.move_to_end(user)
        if len(self._dates) > USERS_MAX:
            self._dates.popitem(last=False)

    def of(self, user: str) -> int:
        """The date of its last login; 0: none since the start."""
        return self._dates.get(user, 0)


# ---- cache -----------------------------------------------------------------------------------------------------------
#
# Results of earlier logins, by a keyed digest of the credentials.


Result = TypeVar("Result")

_ABSENT: Final = 0xFFFFFFFF


@final
class Digests:
    """Digests of credentials under a key that no other process has, so that a look at the memory of a broker shows no
    password, and not even a hash that could be tried offline later.
    """

    __slots__ = ("_key",)

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def of(self, credentials: Credentials) -> bytes:
        """The digest of user, password, certificate and domain. The peer does not count."""
        texts = (credentials.user, credentials.password, credentials.domain)
        parts = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
        parts.append(credentials.certificate)
        message = b"".join([_ABSENT.to_bytes(4) if part is None else len(part).to_bytes(4) + part for part in parts])
        return hmac.digest(self._key, message, "sha256")


@final
class LoginCache(Generic[Result]):
    """At most ``entries_max`` results, each for ``lifetime_ms``; the oldest one makes room. Times are steady."""

    __slots__ = ("_entries", "_entries_max", "_lifetime_ms")

    def __init__(self, entries_max: int, lifetime_ms: int) -> None:
        self._entries: dict[bytes, tuple[int, Result]] = {}
        self._entries_max = entries_max
        self._lifetime_ms = lifetime_ms

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, digest: bytes, result: Result, now_ms: int) -> None:
        """Remember a result from now on."""
        entries = self._entries
        entries.pop(digest, None)
        if self._entries_max <= 0 or self._lifetime_ms <= 0:
            return
        if len(entries) >= self._entries_max:
            del entries[next(iter(entries))]
        entries[digest] = (now_ms + self._lifetime_ms, result)

    def get(self, digest: bytes, now_ms: int) -> Result | None:
        """A result that is not too old, or None."""
        found = self._entries.get(digest)
        if found is None:
            return None
        if found[0] <= now_ms:
            del self._entries[digest]
            return None
        return found[1]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def forget(self, digest: bytes) -> None:
        """Something else is known now."""
        self._entries.pop(digest, None)


# ---- throttle --------------------------------------------------------------------------------------------------------
#
# Slows down peers that try one wrong password after the other.


FREE: Final = 3
"""So many different failures cost a peer nothing: people mistype."""
PAUSE_MS: Final = 200
PAUSE_MS_MAX: Final = 5000
"""The pause after one more failure; each further one doubles it, up to the maximum."""
FORGET_MS: Final = 300_000
"""A peer without a new failure for so long begins anew."""
PEERS_MAX: Final = 4096
_TRIED_MAX: Final = 16


@final
class _Record:
    __slots__ = ("count", "last_ms", "tried")

    def __init__(self) -> None:
        self.count = 0
        self.last_ms = 0
        self.tried: dict[bytes, None] = {}


@final
class LoginThrottle:
    """Counts the failures of each peer, and says how long its next login must wait. Times are steady.

    Only credentials that the peer did not try before count: a program that repeats an old password is not guessing, and
    other programs at its address should not suffer from it. The table is bounded; the peer whose last new failure is
    the oldest makes room.
    """

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def failed(self, peer: str, digest: bytes, now_ms: int) -> None:
        """A login of the peer failed."""
        record = self._records.get(peer)
        if record is None or now_ms - record.last_ms >= FORGET_MS:
            record = _Record()
        elif digest in record.tried:
            return
        self._records.pop(peer, None)
        if len(self._records) >= PEERS_MAX:
            del self._records[next(iter(self._records))]
        self._records[peer] = record  # at the end: the table is in the order of the last failures
        if len(record.tried) >= _TRIED_MAX:
            del record.tried[next(iter(record.tried))]
        record.tried[digest] = None
        record.count += 1
        record.last_ms = now_ms

    def pause_ms(self, peer: str, now_ms: int) -> int:
        """How long a login that begins now must wait; 0 if it need not."""
        record = self._records.get(peer)
        if record is None or record.count <= FREE:
            return 0
        doublings = min(record.count - FREE - 1, PAUSE_MS_MAX.bit_length())
        return max(record.last_ms + min(PAUSE_MS << doublings, PAUSE_MS_MAX) - now_ms, 0)


# ---- workers ---------------------------------------------------------------------------------------------------------
#
# A few threads that do work with a lower priority than the broker's turns.


_NICENESS: Final = 10
"""The threads are nicer than the process by this much: hashing takes the processor time that the turns leave."""
_NICENESS_MAX: Final = 19


@final
class Workers:
    """At most ``threads_max`` threads, each started when it is first needed. A directory that never answers does not
    keep the process from ending.
    """

    __slots__ = ("_threads", "_work", "threads_max")

    def __init__(self, threads_max: int) -> None:
        self.threads_max = threads_max
        self._threads: list[threading.Thread] = []
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def run(self, work: Callable[[], None]) -> None:
        """Do the work in a thread. It must not raise, and no more than ``threads_max`` may be given at a time."""
        if len(self._threads) < self.threads_max:
            thread = threading.Thread(target=self._run, name=f"login {len(self._threads) + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._work.put(work)

    def stop(self) -> None:
        """End the threads that wait for work. Others end with the process."""
        for _ in self._threads:
            self._work.put(None)

    def _run(self) -> None:
        with suppress(OSError, AttributeError):  # without Linux all threads have one priority
            thread = threading.get_native_id()
            niceness = os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS
            os.setpriority(os.PRIO_PROCESS, thread, min(niceness, _NICENESS_MAX))
        while (work := self._work.get()) is not None:
            work()
            work = None  # while this thread waits for the next one it keeps no credentials and no client


# ---- login service ---------------------------------------------------------------------------------------------------
#
# Decides logins: from memory at once, else in a thread, and later for peers that failed before.


THREADS: Final = 4
"""How many logins are verified at a time. Hashes share what the turns leave of the processors; directories are waited
for.
"""
WAITING_MAX: Final = 1024
"""Attempts that wait for a thread; more are refused."""
WAITING_OF_ONE_MAX: Final = 256
"""Those of one peer."""
IN_LINE_MS_MAX: Final = 8_000
"""An attempt that finds no thread for so long is refused: a directory that does not answer keeps them all, and clients
should hear that before their ``handshakeTimeout`` is over.
"""
_LOOK_S: Final = 1.0
HELD_OF_ONE_MAX: Final = 16
"""Attempts of one peer that wait because of its failures. When there are so many, even right credentials are refused,
or else answers would come as fast as guesses.
"""
AGAIN_S: Final = 0.05
"""An authenticator that does not know yet is asked again after so long, and each time after twice as long, …"""
AGAIN_S_MAX: Final = 1.0
"""… up to this, because others are asked again, too, and spend time on the password."""
_ASKED_MAX: Final = 20
"""Then it cannot be found out now."""
_BUSY: Final = "Too many logins are waiting; try again later"
_USER_MAX: Final = 80


class _Verdict(NamedTuple):
    """What an authenticator has said. Without an identity, ``refusal`` says why the credentials are wrong, or
    ``failure`` why that cannot be found out now, or ``is_early``: not yet.
    """

    identity: Identity | None = None
    refusal: str = ""
    failure: str = ""
    is_early: bool = False


class Timing(Protocol):
    """The event loop, as far as logins need it."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> object:
        """Call it after so many seconds."""

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> object:
        """Call it soon; may be asked by any thread. Raises RuntimeError if the loop is closed."""


@final
class LoginService:
    """The ``Logins`` of a server. ``steady_ms`` never goes back; ``date_ms`` is the date, for logins that end at
    one. ``warn`` writes a line to the log, seldom enough for its kind, about a user, an address (host:port) and an
    acceptor.

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
        warn: Callable[[str, str, str, str, str], None],
        counts: LoginCounts,
    ) -> None:
        self._counts = counts
        self.latest: Final = LatestLogins()
        self._authenticator = authenticator
        self._timing = timing
        self._steady_ms = steady_ms
        self._date_ms = date_ms
        self._warn = warn
        self._digests = Digests()
        size, lifetime_ms = config.authentication_cache_size, config.security_invalidation_interval
        self._right: LoginCache[Identity] = LoginCache(size, lifetime_ms)
        self._wrong: LoginCache[str] = LoginCache(size, lifetime_ms)
        self._slowing = LoginThrottle()
        self._held: dict[str, dict[bytes, Attempt]] = {}
        """Attempts by network that wait because of earlier failures."""
        self._under_way: dict[bytes, Attempt] = {}
        """Attempts that wait for a thread or are in one."""
        self._lines = WaitingLogins()
        self._workers = Workers(THREADS)
        self.on_change: Callable[[], None] | None = None
        """Called when others may log in than before."""
        self._running = 0
        self._is_watched = False
        """Will somebody look for those that are in line for too long?"""
        self._begun: Login | None = None
        """The login that ``begin`` has not returned yet; nobody needs to be woken for it."""

    def begin(self, credentials: Credentials, wake: Callable[[], None]) -> Login:
        """Begin a login; see ``Logins``."""
        login = self._begun = Login()
        peer, is_question = credentials.peer, credentials.is_question
        address, acceptor = credentials.address or peer, credentials.acceptor
        self._begin(credentials, Waiter(login, wake, address, acceptor, network_of(peer), is_question))
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
        """Check logins with another authenticator from now on, and forget remembered results. Open sessions stay."""
        self._authenticator = authenticator
        self.forget()
        if self.on_change is not None:
            self.on_change()

    @property
    def authenticator(self) -> Authenticator:
        """The authenticator in use."""
        return self._authenticator

    def file_warnings(self) -> list[str]:
        """What is wrong with files and keys that say who may log in, so that what was read before is in force."""
        files, fetched = files_of(self._authenticator), fetched_keys_of(self._authenticator)
        stale = [f"a file of users is not in force as it is: {file.complaint}" for file in files if file.complaint]
        return stale + [f"tokens may not be checked: {keys.complaint}" for keys in fetched if keys.complaint]

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
        known, refusal = self._known(digest, now_ms), self._wrong.get(digest, now_ms)
        if known is not None or refusal:
            self._answer(attempt, known, refusal or "")
            return
        same = self._under_way.get(digest)
        if same is not None:
            same.waiters += attempt.waiters
            return
        if len(self._lines) >= WAITING_MAX or self._lines.length_of(attempt.network) >= WAITING_OF_ONE_MAX:
            for waiter in attempt.waiters:
                self._refuse(waiter, attempt.credentials, _BUSY, BUSY)
            return
        self._under_way[digest] = attempt
        self._lines.add(attempt, now_ms)
        self._counts.waiting += 1
        self._send_on()
        self._watch()

    def _known(self, digest: bytes, now_ms: int) -> Identity | None:
        known = self._right.get(digest, now_ms)
        if known is not None and 0 < known.expires_ms <= self._date_ms():
            self._right.forget(digest)
            return None
        return known

    # ---- verifying -------------------------------------------------------------------------------

    def _send_on(self) -> None:
        """Give threads that are free the next attempts."""
        while self._running < THREADS and self._lines.has_next:
            attempt = self._lines.pop()
            if attempt.is_wanted:
                self._running += 1
                self._counts.verified += 1
                self._workers.run(lambda attempt=attempt: self._verify(attempt))  # type: ignore[misc]
            else:
                self._forget(attempt)

    def _watch(self) -> None:
        """Look after those in line, as long as there are any."""
        if not self._is_watched and self._lines.has_next:
            self._is_watched = True
            self._timing.call_later(_LOOK_S, self._refuse_late)

    def _refuse_late(self) -> None:
        self._is_watched = False
        for attempt in self._lines.take_late(self._steady_ms() - IN_LINE_MS_MAX):
            self._forget(attempt)
            for waiter in attempt.waiters:
                told = f"in {IN_LINE_MS_MAX // 1000} s none of the {THREADS} threads that check logins was free"
                self._refuse(waiter, attempt.credentials, _BUSY, BUSY, told)
        self._watch()

    def _verify(self, attempt: Attempt) -> None:
        """In a thread: ask the authenticator."""
        try:
            verdict = _Verdict(self._authenticator.authenticate(attempt.credentials), refusal=WRONG)
        except NotYetError:
            verdict = _Verdict(is_early=True)
        except CredentialsRefusedError as refused:
            verdict = _Verdict(refusal=str(refused) or WRONG)
        except AuthenticatorError as unknown:
            verdict = _Verdict(failure=str(unknown))
        except Exception as error:  # its text may contain what was given to log in
            verdict = _Verdict(failure=f"{type(self._authenticator).__name__} failed with {_place(error)}")
        try:
            self._timing.call_soon_threadsafe(lambda: self._verified(attempt, verdict))
        except RuntimeError:
            return  # the broker has stopped

    def _verified(self, attempt: Attempt, verdict: _Verdict) -> None:
        self._running -= 1
        if verdict.is_early and attempt.asked_count >= _ASKED_MAX:
            verdict = _Verdict(failure="the keys of tokens are not there in time")
        if verdict.is_early:
            self._ask_again(attempt)
            self._send_on()
            return
        self._forget(attempt)
        if verdict.failure:
            for waiter in attempt.waiters:
                text = "The broker cannot check logins now; try again later"
                self._refuse(waiter, attempt.credentials, text, UNAVAILABLE, verdict.failure)
        else:
            now_ms = self._steady_ms()
            if verdict.identity is None:
                self._wrong.put(attempt.digest, verdict.refusal, now_ms)
            else:
                self._right.put(attempt.digest, verdict.identity, now_ms)
            self._answer(attempt, verdict.identity, verdict.refusal)
        self._send_on()

    def _ask_again(self, attempt: Attempt) -> None:
        """Nothing can be found out yet: the attempt comes back to its line in a moment, and holds no thread until then.
        It goes on to count as one that waits.
        """
        network = attempt.network
        self._lines.step_aside(network)

        def come_back() -> None:
            self._lines.come_back(network)
            self._lines.add(attempt, self._steady_ms())
            self._send_on()
            self._watch()

        pause_s = min(AGAIN_S * 2**attempt.asked_count, AGAIN_S_MAX)
        attempt.asked_count += 1
        self._timing.call_later(pause_s, come_back)

    def _forget(self, attempt: Attempt) -> None:
        del self._under_way[attempt.digest]
        self._counts.waiting -= 1

    # ---- answers ---------------------------------------------------------------------------------

    def _answer(self, attempt: Attempt, identity: Identity | None, refusal: str) -> None:
        """It is known who this is; None: the credentials are wrong, as ``refusal`` says."""
        now_ms = self._steady_ms()
        for waiter in attempt.waiters:
            if identity is not None:
                self._admit(waiter, identity)
            else:
                if not waiter.is_question:
                    self._slowing.failed(waiter.network, attempt.digest, now_ms)
                self._refuse(waiter, attempt.credentials, refusal, INVALID)

    def _admit(self, waiter: Waiter, identity: Identity) -> None:
        self._counts.successes += 1
        self.latest.note(identity.user, self._date_ms())
        waiter.login.identity = identity
        self._wake(waiter)

    def _refuse(self, waiter: Waiter, credentials: Credentials, text: str, reason: str, told: str = "") -> None:
        """Refuse a client with ``text``; the log gets ``told`` instead, if there is one."""
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
        line = f"warning: login {who} refused: {why}"
        self._warn(line, f"login {reason}", (user or "")[:_USER_MAX], waiter.address, waiter.acceptor)

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
