"""Steps about connections, time, and the broker's inside.

With ``C`` a client and ``Q`` a queue: ``drop C…`` (the connection breaks), ``eof C…`` (it says no more), ``stall C…``
and ``read C…`` (it stops reading, reads on); ``closed C…``, ``open C…``; ``blocked C…``, ``flowing C…`` (does the
broker read from it?); ``beats C N`` (exactly so many since they were last looked at), ``alive C MS`` (time passes and
one or more come), ``beat-and-wait C MS``, ``beat-and-stay-alive C MS`` (the same after a heart-beat of the client);
``advance MS``; ``together`` … ``settle``: what happens between them happens in one turn.

``counts Q MESSAGES DELIVERING SCHEDULED [replaced N] [killed N] [expired N] [added N] [acked N]`` (``*``: any number);
``consumers Q N``; ``queue NAME``, ``no-queue NAME``, ``no-address NAME``, ``address NAME [routed N] [unrouted N]
[messages N]``; ``pause Q``, ``resume Q``, ``ring-size Q N``, ``purge Q``.
"""

from __future__ import annotations

from artemis_py.core.order.entry import PURGED
from tests.kit.in_process import Client
from tests.wire.transcript_run import StepFunction, TranscriptRun

Words = list[str]
Headers = list[str]

_TALLY_WORDS = {
    "replaced": "replaced",
    "killed": "killed",
    "expired": "expired",
    "added": "added",
    "acked": "acknowledged",
}


def alive(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    name, duration_ms = words
    stage.world.advance(int(duration_ms))
    assert stage.fresh_beats(name) > 0, f"no heart-beat for {name} in {duration_ms} ms"


def settle(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    """What was begun is carried out; what is more than a turn allows goes on in the next."""
    stage.world.together = False
    stage.world.turns.schedule()
    stage.world.settle()


def are(**wanted: object) -> StepFunction:
    """A step in which clients are found in this state."""

    def look(stage: TranscriptRun, words: Words, headers: Headers) -> None:
        for name in words:
            client = stage.world.client(name)
            connection = client.connection
            state = {
                "closed": client.is_closed, "session": connection.session.is_open, "reading": client.transport.reading,
                "blocked": connection.session.blocked_by is not None, "state": connection.state,
            }  # fmt: skip
            equal({key: state[key] for key in wanted}, wanted, name)

    return look


def counts(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    queue = stage.world.queue(words[0])
    here = queue.message_count, queue.contents.delivering_count, len(queue.contents.scheduled)
    wanted = dict(zip(("messages", "delivering", "scheduled"), words[1:4], strict=True))
    actual = dict(zip(wanted, map(str, here), strict=True))
    for word, number in zip(words[4::2], words[5::2], strict=True):
        wanted[word] = number
        actual[word] = str(getattr(queue.contents.counters, _TALLY_WORDS[word]))
    wanted = {name: number for name, number in wanted.items() if number != "*"}
    actual = {name: actual[name] for name in wanted}
    assert actual == wanted, f"{queue.name} has {actual} instead of {wanted}"


def address(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    assert words[0] in stage.world.broker.addresses, f"no address {words[0]}"
    address = stage.world.broker.addresses[words[0]]
    actual = {
        "routed": address.routed_message_count,
        "unrouted": address.unrouted_message_count,
        "messages": address.account.message_count,
    }
    for word, number in zip(words[1::2], words[2::2], strict=True):
        assert actual[word] == int(number), f"{words[0]} has {actual}"


def equal(found: object, wanted: object, what: str) -> None:
    """For steps of one line."""
    assert found == wanted, f"{what}: {found} instead of {wanted}"


def each(act: str) -> StepFunction:
    """A step in which clients do one after the other what a method of theirs does."""
    return lambda stage, words, _: [getattr(stage.world.client(name), act)() for name in words]


BROKER_STEPS: dict[str, StepFunction] = {
    "address": address,
    "advance": lambda stage, words, _: stage.world.advance(int(words[0])),
    "alive": alive,
    "beat-and-stay-alive": lambda stage, words, _: (stage.write(words[0], b"\n"), alive(stage, words, [])),
    "beat-and-wait": lambda stage, words, _: (stage.write(words[0], b"\n"), stage.world.advance(int(words[1]))),
    "beats": lambda stage, words, _: equal(stage.fresh_beats(words[0]), int(words[1]), "heart-beats"),
    "blocked": are(blocked=True, state="blocked", reading=False),
    "closed": are(closed=True),
    "consumers": lambda stage, words, _: equal(stage.world.queue(words[0]).consumer_count, int(words[1]), "consumers"),
    "counts": counts,
    "drop": each(Client.drop.__name__),
    "eof": each(Client.half_close.__name__),
    "flowing": are(blocked=False, reading=True),
    "no-address": lambda stage, words, _: equal(words[0] in stage.world.broker.addresses, False, "there"),
    "no-queue": lambda stage, words, _: equal(words[0] in stage.world.broker.queues, False, "there"),
    "open": are(closed=False, session=True),
    "pause": lambda stage, words, _: stage.world.queue(words[0]).pause(),
    "purge": lambda stage, words, _: (
        stage.world.queue(words[0]).purge(PURGED, stage.world.now_ms), settle(stage, [], []),
    ),
    "queue": lambda stage, words, _: stage.world.queue(words[0]),
    "read": each(Client.read_again.__name__),
    "resume": lambda stage, words, _: (stage.world.queue(words[0]).resume(), settle(stage, [], [])),
    "ring-size": lambda stage, words, _: stage.world.broker.queue_operations.set_ring_size(words[0], int(words[1])),
    "settle": settle,
    "stall": each(Client.stall.__name__),
    "together": lambda stage, *_: setattr(stage.world, "together", True),
}  # fmt: skip
