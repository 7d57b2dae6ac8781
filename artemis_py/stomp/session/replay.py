"""SUBSCRIBE with ``bookmark``: replays of the log."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.consumer import Consumer
from artemis_py.core.memory import SELECTORS, SUBSCRIPTION_BYTES, SUBSCRIPTIONS, selector_bytes
from artemis_py.core.replay.bookmarks import bounds_of
from artemis_py.core.replay.manager import Replays
from artemis_py.core.replay.replay import Addresses, Replay, addresses_read, pace_of
from artemis_py.errors import BrokerError, NotAllowedError, NotFoundError
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.session.subscribe import (
    BROWSER,
    EXCLUSIVE_HEADERS,
    LIMIT_HEADERS,
    NO_LOCAL_HEADERS,
    ack_mode_of,
    durable_name_of,
    is_true,
    selector_of,
    writer_for,
)
from artemis_py.stomp.temporaries import PREFIXES
from artemis_py.stomp.wire.dialect import split_qualified
from artemis_py.stomp.wire.frames import FrameError
from artemis_py.stomp.wire.writer import MessageWriter

BOOKMARK: Final = "bookmark"
_PAUSE: Final = ("pause",)
_RESUME: Final = ("resume",)
_COMPLETED: Final = ("completed",)
_REPLACE: Final = ("replace",)
_RATE: Final = "rate"
_GAP: Final = "rate-max-gap"
_NOT_TOGETHER: Final = (*LIMIT_HEADERS, "x-qpid-replay-period", "replay-period", "consumer-priority", "x-priority")


@final
class ReplaySubscription:
    """A subscription that replays: its replay, and how its messages are written."""

    __slots__ = ("destination", "id", "replay", "selector", "size_bytes", "tells_end", "writer")

    def __init__(
        self,
        id: str,
        destination: str,
        selector: str | None,
        replay: Replay,
        writer: MessageWriter,
        *,
        tells_end: bool,
    ) -> None:
        self.id = id
        self.destination = destination
        self.selector = selector
        self.replay = replay
        self.writer = writer
        self.tells_end = tells_end
        """Is the client to be told when it has everything (``completed:true``)?"""
        self.size_bytes = SUBSCRIPTION_BYTES + len(id) + len(destination)
        """Its size in memory without its selector."""


def asks_for_replay(headers: dict[str, str]) -> bool:
    """Is a SUBSCRIBE about a replay?"""
    return BOOKMARK in headers or is_true(headers, _PAUSE) or is_true(headers, _RESUME)


@final
class Replaying:
    """The replays of one session."""

    __slots__ = ("_sent_lsn", "_state", "by_key", "by_number")

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.by_key: dict[str, ReplaySubscription] = {}
        """By the id that the client gave; by destination where STOMP 1.0 gives none."""
        self.by_number: dict[int, ReplaySubscription] = {}
        """By the number of the replay, which is in the ids of its messages."""
        self._sent_lsn = 0
        """What replays wrote last waits for this lsn, because it stands behind something that does."""

    @property
    def _replays(self) -> Replays:
        """Raises BrokerError where there is no log to replay."""
        service = self._state.service
        if service.replays is not None:
            return service.replays
        missing = "set journal-retention-directory"
        if not service.broker.config.persistence_enabled:
            missing = "set persistence-enabled to true, and journal-retention-directory"
        raise BrokerError(f"A replay (bookmark) reads the retained log, and this broker has none: {missing}")

    # ---- SUBSCRIBE -------------------------------------------------------------------------------

    def subscribe(self, key: str, headers: dict[str, str], now_ms: int) -> None:
        """Begin, pause or resume a replay. Raises ArtemisError; everything is then as before."""
        known = self.by_key.get(key)
        pauses, resumes = is_true(headers, _PAUSE), is_true(headers, _RESUME)
        if pauses and resumes:
            raise FrameError("pause:true and resume:true exclude each other")
        if known is not None:
            self._change(known, headers, now_ms, pauses=pauses, resumes=resumes)
            return
        if BOOKMARK not in headers:
            named = _PAUSE[0] if pauses else _RESUME[0]
            raise FrameError(
                f"{named}:true is for replays, and this connection has no replay {key[:80]!r}: a SUBSCRIBE with "
                f"{BOOKMARK} begins one"
            )
        if resumes:
            raise FrameError(f"resume:true is for a replay that is paused, and {BOOKMARK} begins a new one")
        self._open(key, headers, now_ms, is_paused=pauses)

    def _change(
        self, known: ReplaySubscription, headers: dict[str, str], now_ms: int, *, pauses: bool, resumes: bool
    ) -> None:
        if not (pauses or resumes):
            raise FrameError(
                f"There is already a replay {known.id[:80]!r}: pause:true or resume:true changes it; unsubscribe it to "
                "begin another one"
            )
        if headers["destination"] != known.destination:
            raise FrameError(
                f"The replay {known.id[:80]!r} is of {known.destination[:80]}, not of {headers['destination'][:80]}"
            )
        for name in (BOOKMARK, _RATE, _GAP, "selector"):
            if name in headers:
                raise FrameError(f"pause and resume change nothing else: leave out {name}, or begin another replay")
        if pauses:
            self._replays.pause(known.replay, now_ms)
        else:
            self._replays.resume(known.replay, now_ms)

    def _open(self, key: str, headers: dict[str, str], now_ms: int, *, is_paused: bool) -> None:
        state = self._state
        service, broker = state.service, state.broker
        replays = self._replays
        _check_together(headers)
        ack_mode = ack_mode_of(headers)
        selector = selector_of(service, headers)
        pace = pace_of(headers.get(_RATE), headers.get(_GAP))
        bounds = bounds_of(headers[BOOKMARK], replays.log.last_lsn)
        addresses = self._addresses(headers["destination"])
        number = broker.next_consumer_id()
        replay = Replay(
            number,
            state.owner,
            state.origin,
            addresses,
            bounds,
            Consumer(number, state.owner, settles=True, destructive=False, selector=selector),
            pace,
            no_local=is_true(headers, NO_LOCAL_HEADERS),
        )
        replay.is_paused = is_paused
        replay.paused_at_ms = broker.clock.steady_ms(now_ms)
        writer = writer_for(headers, number, state.version, settles=ack_mode == "auto")
        writer.amq_message_id = service.enable_message_id
        writer.tells_bookmarks = True
        text = None if selector is None else selector.text
        subscription = ReplaySubscription(
            key, headers["destination"], text, replay, writer, tells_end=is_true(headers, _COMPLETED)
        )
        replays.open(replay, now_ms)
        self.by_key[key] = subscription
        self.by_number[number] = subscription
        broker.holdings.move(SUBSCRIPTIONS, subscription.size_bytes)
        broker.holdings.move(SELECTORS, selector_bytes(text))

    def _addresses(self, destination: str) -> Addresses:
        """What a replay of a destination reads. Nothing is created for it. Raises BrokerError."""
        state = self._state
        service, broker = state.service, state.broker
        if destination.startswith(tuple(PREFIXES)):
            raise NotFoundError(f"A temporary destination has no history: {destination[:80]}")
        name, _ = service.prefixes.split(destination)
        address_name, queue_name = split_qualified(name)
        service.check_may_read(address_name or queue_name or "")
        if address_name == service.told_address:
            raise NotFoundError(f"Notifications are not logged: subscribe to {address_name} without a bookmark")
        found = addresses_read(broker.bindings, broker.config.wildcards, address_name, queue_name)
        permit = state.permit("consume")
        if permit is not None:
            permit.to_use(found.name, queue_name, in_full=queue_name is not None)
        for pattern in found.patterns:
            if not service.temporaries.may_read(pattern, state.client):
                raise BrokerError(f"{pattern} is a temporary destination of another client")
        return found

    def refusal(self) -> str:
        """Why a replay must end, since its client may not read what it shows any more; empty: all may go on."""
        for subscription in self.by_key.values():
            try:
                self._addresses(subscription.destination)
            except NotAllowedError as error:
                return str(error)
            except BrokerError:  # what it reads may be gone meanwhile
                continue
        return ""

    # ---- the end ---------------------------------------------------------------------------------

    def unsubscribe(self, subscription: ReplaySubscription) -> None:
        """End a replay."""
        del self.by_key[subscription.id]
        del self.by_number[subscription.replay.id]
        self.drop(subscription)

    def drop(self, subscription: ReplaySubscription) -> None:
        """End a replay that is not in the tables any more."""
        self._replays.close(subscription.replay)
        holdings = self._state.broker.holdings
        holdings.move(SUBSCRIPTIONS, -subscription.size_bytes)
        holdings.move(SELECTORS, -selector_bytes(subscription.selector))

    def take_all(self) -> list[ReplaySubscription]:
        """The session ends: forget all replays, which ``drop`` then ends. They show nothing more."""
        found = list(self.by_key.values())
        self.by_key.clear()
        self.by_number.clear()
        return found

    # ---- output ----------------------------------------------------------------------------------

    def room_bytes(self, durable_lsn: int) -> int:
        """How many bytes a replay may write now. None while what replays wrote before stands behind something that is
        not durable: it must not pile up.
        """
        if self._sent_lsn > durable_lsn:
            return 0
        return self._state.service.turn_bytes(len(self.by_key))

    def wake(self, now_ms: int) -> None:
        """The client takes more again."""
        replays = self._replays
        for subscription in self.by_key.values():
            replays.wake(subscription.replay, now_ms)

    def write(self, replay: Replay, now_ms: int) -> str | None:
        """Write what a replay shows as MESSAGE frames. Returns why it cannot go on; None if it can."""
        subscription = self.by_number.get(replay.id)
        if subscription is None:
            return None
        entries, replay.outbox = replay.outbox, []
        if replay.completes:
            replay.completes = False
            if subscription.tells_end:
                entries.append(replay.completion(subscription.destination, now_ms))
        if entries:
            out = self._state.out
            subscription.writer.write(entries, out.parts())
            self._sent_lsn = out.segments[-1][0]
            self._state.service.traffic.frames_out["MESSAGE"] += len(entries)
        if replay.failure is None:
            return None
        self.unsubscribe(subscription)
        return f"Replay {subscription.id[:80]!r} ended. {replay.failure}"


def _check_together(headers: dict[str, str]) -> None:
    """Raises FrameError for a header that makes no sense in a replay."""
    for name in _NOT_TOGETHER:
        if name in headers:
            raise _not_together(name)
    for names in (BROWSER, EXCLUSIVE_HEADERS, _REPLACE):
        if is_true(headers, names):
            raise _not_together(names[0])
    durable_name = durable_name_of(headers)
    if durable_name is not None:
        raise _not_together("durable-subscription-name")


def _not_together(name: str) -> FrameError:
    return FrameError(f"{name} and {BOOKMARK} exclude each other: a replay takes nothing from a queue")
