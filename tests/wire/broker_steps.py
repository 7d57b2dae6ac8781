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


def _clients(stage: TranscriptRun, names: Words) -> list[Client]:
    return [stage.world.client(name) for name in names]


def beats(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    name, count = words
    client = stage.world.client(name)
    client.collect()
    fresh = client.stream.beats - stage.claimed_beats.get(name, 0)
    assert fresh == int(count), f"{name} got {fresh} heart-beats"
    stage.claimed_beats[name] = client.stream.beats


def alive(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    name, duration_ms = words
    stage.world.advance(int(duration_ms))
    client = stage.world.client(name)
    client.collect()
    assert client.stream.beats > stage.claimed_beats.get(name, 0), f"no heart-beat for {name} in {duration_ms} ms"
    stage.claimed_beats[name] = client.stream.beats


def beat_and_wait(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.write(words[0], b"\n")
    stage.world.advance(int(words[1]))


def beat_and_stay_alive(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.write(words[0], b"\n")
    alive(stage, words, headers)


def advance(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.world.advance(int(words[0]))


def together(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.world.together = True


def settle(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.world.together = False
    stage.world.settle()


def drop(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for client in _clients(stage, words):
        client.drop()


def eof(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for client in _clients(stage, words):
        client.half_close()


def stall(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for client in _clients(stage, words):
        client.stall()


def read(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for client in _clients(stage, words):
        client.read_again()


def closed(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for name in words:
        assert stage.world.client(name).is_closed, f"{name} is still open"


def is_open(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for name in words:
        assert not stage.world.client(name).is_closed, f"{name} is closed"
        assert stage.world.client(name).connection.session.is_open, f"{name} has no session"


def blocked(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for name in words:
        client = stage.world.client(name)
        assert client.connection.session.blocked_by is not None, f"{name} is not blocked"
        assert client.connection.state == "blocked", f"{name} is {client.connection.state}"
        assert not client.transport.reading, f"the broker still reads from {name}"


def flowing(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for name in words:
        client = stage.world.client(name)
        assert client.connection.session.blocked_by is None, f"{name} is blocked"
        assert client.transport.reading, f"the broker does not read from {name}"


def counts(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    queue = stage.world.queue(words[0])
    wanted = {
        name: int(number)
        for name, number in zip(("messages", "delivering", "scheduled"), words[1:4], strict=True)
        if number != "*"
    }
    actual = {
        "messages": queue.message_count,
        "delivering": queue.contents.delivering_count,
        "scheduled": len(queue.contents.scheduled),
    }
    for word, number in zip(words[4::2], words[5::2], strict=True):
        wanted[word] = int(number)
        actual[word] = getattr(queue.contents.counters, _TALLY_WORDS[word])
    actual = {name: number for name, number in actual.items() if name in wanted}
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


def no_address(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    assert words[0] not in stage.world.broker.addresses, f"address {words[0]} is there"


def queue(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.world.queue(words[0])


def no_queue(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    assert words[0] not in stage.world.broker.queues, f"queue {words[0]} is there"


def consumers(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    count = stage.world.queue(words[0]).consumer_count
    assert count == int(words[1]), f"{words[0]} has {count} consumers"


def pause(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.world.queue(words[0]).pause()


def resume(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.world.queue(words[0]).resume()
    stage.world.turns.schedule()
    stage.world.settle()


def ring_size(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.world.broker.queue_operations.set_ring_size(words[0], int(words[1]))


def purge(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.world.queue(words[0]).purge(PURGED, stage.world.now_ms)
    stage.world.turns.schedule()  # what is more than a turn allows goes on in the next
    stage.world.settle()


BROKER_STEPS: dict[str, StepFunction] = {
    "address": address,
    "advance": advance,
    "alive": alive,
    "beat-and-stay-alive": beat_and_stay_alive,
    "beat-and-wait": beat_and_wait,
    "beats": beats,
    "blocked": blocked,
    "closed": closed,
    "consumers": consumers,
    "counts": counts,
    "drop": drop,
    "eof": eof,
    "flowing": flowing,
    "no-address": no_address,
    "no-queue": no_queue,
    "open": is_open,
    "pause": pause,
    "purge": purge,
    "queue": queue,
    "read": read,
    "resume": resume,
    "ring-size": ring_size,
    "settle": settle,
    "stall": stall,
    "together": together,
}
