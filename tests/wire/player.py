"""Plays a transcript against a world. One method a step; the table of them is at the end of the class.

Clients that a step names connect (as sockets) at their first mention. Steps on one line, with ``C`` a client, ``Q`` a
queue, and ``name:value`` headers behind a ``|``:

``connect C | headers``; ``send C DESTINATION BODY… | headers`` (one frame each, no receipt); ``subscribe C ID
DESTINATION [ACK] | headers``; ``unsubscribe C ID``; ``expect C BODY… | headers`` (MESSAGE frames in this order, each
with these headers), ``expect-any C BODY…`` (any order); ``take C BODY…`` (expect and acknowledge one by one), ``refuse C BODY`` (NACK,
and expect it again); ``ack C BODY…``, ``nack C BODY…`` (of the last message received
with that body) ``| headers``; ``begin C T``, ``commit C T``, ``abort C T``; ``disconnect C``; ``receipt C ID…``;
``error C [WORDS IN THE MESSAGE] | headers``, ``last-error C …`` (whatever came before it); ``drain C N`` (N or more MESSAGE frames); ``nothing C…``; ``differ
VALUE…``; ``beats C N`` (exactly), ``alive C MS`` (time passes, one or more come), ``beat-and-wait C MS``,
``beat-and-stay-alive C MS``; ``drop C``, ``eof C``, ``stall C``, ``read C``;
``closed C…``, ``open C…``, ``blocked C…``, ``flowing C…``; ``advance MS``; ``counts Q MC DC SC [replaced N]
[killed N] [expired N] [added N] [acked N]``; ``pause Q``, ``resume Q``, ``ring-size Q N``, ``purge Q``;
``queue NAME``, ``no-queue NAME``, ``address NAME [routed N] [unrouted N] [messages N]``, ``no-address NAME``;
``consumers Q N``; ``repeat N TEMPLATE-STEP…`` (``{i}`` counts from 1).
"""

from __future__ import annotations

from collections.abc import Callable

from tests.wire.client_frames import ServerFrame
from tests.wire.cutting import Cutting
from tests.wire.matching import Captures, ExpectedFrame, difference
from tests.wire.transcript import Step, expected_frames, lines_for, sent_bytes, unescaped
from tests.wire.world import Client, World

_TALLY_WORDS = {
    "replaced": "replaced",
    "killed": "killed",
    "expired": "expired",
    "added": "added",
    "acked": "acknowledged",
}


class Player:
    """Carries out steps in one version of STOMP, with one way of cutting what clients send."""

    def __init__(self, world: World, version: str, cutting: Cutting) -> None:
        self.world = world
        self.version = version
        self.captures = Captures()
        self.captures.values["version"] = version
        self.delivered: dict[str, dict[str, ServerFrame]] = {}
        self._cutting = cutting
        self._claimed_beats: dict[str, int] = {}

    def play(self, steps: tuple[Step, ...]) -> None:
        """Carry out all steps, then look for frames that nobody expected."""
        for step in steps:
            try:
                self.perform(step)
            except AssertionError as error:
                raise AssertionError(f"line {step.line_number}, {step.verb}: {error}") from error
        for name, client in self.world.clients.items():
            left = client.collect()
            assert not left, f"{name} got more than the transcript expects:\n" + "\n".join(one.text for one in left)
            assert client.stream.is_whole, f"{name} got the beginning of a frame that does not end"
            beats = client.stream.beats - self._claimed_beats.get(name, 0)
            assert beats == 0, f"{name} got {beats} heart-beats that the transcript does not expect"

    def perform(self, step: Step) -> None:
        """Carry out one step, if it is one of this version."""
        if self.version not in step.versions:
            return
        if step.verb == ">>>":
            self._write(step.words[0], sent_bytes([self._fill(line) for line in lines_for(self.version, step.block)]))
        elif step.verb.startswith("<<<"):
            lines = [self._time(line) for line in lines_for(self.version, step.block)]
            self._take(step.words[0], expected_frames(lines), step.verb[3:])
        else:
            words, headers = _parted(step.words)
            self._STEPS[step.verb](self, [self._fill(word) for word in words], [self._fill(line) for line in headers])

    def _fill(self, text: str) -> str:
        return self.captures.fill(text, self.world.now_ms)

    def _time(self, text: str) -> str:
        """Only ``{now}``: other names in expected text may be captured just now."""
        return self.captures.fill(text, self.world.now_ms) if "{now" in text else text

    # ---- bytes and frames ------------------------------------------------------------------------

    def _write(self, name: str, data: bytes) -> None:
        client = self.world.client(name)
        for part in self._cutting.parts(data):
            client.send(part)

    def _frame(self, name: str, command: str, headers: list[str], body: str = "") -> None:
        lines = [command, *(header for header in headers if not header.endswith(":-"))]
        self._write(name, unescaped("\n".join(lines) + "\n\n" + body) + b"\0")

    def _take(self, name: str, expected: list[ExpectedFrame], mode: str) -> None:
        client = self.world.client(name)
        frames = client.collect()
        for wanted in expected:
            assert frames, f"{name} got nothing; expected {wanted}"
            if mode == "?":
                index = self._index_of(wanted, frames)
            else:
                index = 0
                wrong = difference(wanted, frames[0], self.captures, exact=mode == "=")
                assert wrong is None, f"{name}: {wrong} in\n{frames[0].text}"
            self._remember(name, frames.pop(index))

    def _index_of(self, wanted: ExpectedFrame, frames: list[ServerFrame]) -> int:
        for index, frame in enumerate(frames):
            if difference(wanted, frame, self.captures, exact=False) is None:
                return index
        raise AssertionError(f"{wanted} is not among\n" + "\n".join(frame.text for frame in frames))

    def _remember(self, name: str, frame: ServerFrame) -> None:
        if frame.command == "MESSAGE":
            self.delivered.setdefault(name, {})[frame.body.decode("utf-8", "backslashreplace")] = frame

    # ---- frames on one line ----------------------------------------------------------------------

    def _connect(self, words: list[str], headers: list[str]) -> None:
        for name in words:
            self._frame(name, "CONNECT", [f"accept-version:{self.version}", "host:broker", *headers])
            self._take(name, [("CONNECTED", [f"version:{self.version}"], "")], "")

    def _send(self, words: list[str], headers: list[str]) -> None:
        name, destination, *bodies = words
        for body in bodies:
            self._frame(name, "SEND", [f"destination:{destination}", *headers], body)

    def _subscribe(self, words: list[str], headers: list[str]) -> None:
        name, id, destination, *ack = words
        self._frame(name, "SUBSCRIBE", [f"id:{id}", f"destination:{destination}", f"ack:{[*ack, 'auto'][0]}", *headers])

    def _unsubscribe(self, words: list[str], headers: list[str]) -> None:
        self._frame(words[0], "UNSUBSCRIBE", [f"id:{words[1]}", *headers])

    def _expect(self, words: list[str], headers: list[str]) -> None:
        self._take(words[0], [("MESSAGE", headers, body) for body in words[1:]], "")

    def _expect_any(self, words: list[str], headers: list[str]) -> None:
        self._take(words[0], [("MESSAGE", headers, body) for body in words[1:]], "?")

    def _ack(self, words: list[str], headers: list[str]) -> None:
        self._settle("ACK", words, headers)

    def _nack(self, words: list[str], headers: list[str]) -> None:
        self._settle("NACK", words, headers)

    def _refuse(self, words: list[str], headers: list[str]) -> None:
        self._nack(words, headers)
        self._expect(words, ["redelivered:true"])

    def _settle(self, command: str, words: list[str], headers: list[str]) -> None:
        name, *bodies = words
        for body in bodies:
            message = self.delivered[name][body]
            id = f"message-id:{message.header('message-id')}"
            subscription = f"subscription:{message.header('subscription')}"
            means = {"1.0": [id], "1.1": [id, subscription], "1.2": [f"id:{message.header('ack')}"]}[self.version]
            self._frame(name, command, [*means, *headers])

    def _take_each(self, words: list[str], headers: list[str]) -> None:
        name, *bodies = words
        for body in bodies:
            self._expect([name, body], headers)
            self._ack([name, body], [])

    def _begin(self, words: list[str], headers: list[str]) -> None:
        self._frame(words[0], "BEGIN", [f"transaction:{words[1]}", *headers])

    def _commit(self, words: list[str], headers: list[str]) -> None:
        self._frame(words[0], "COMMIT", [f"transaction:{words[1]}", *headers])

    def _abort(self, words: list[str], headers: list[str]) -> None:
        self._frame(words[0], "ABORT", [f"transaction:{words[1]}", *headers])

    def _disconnect(self, words: list[str], headers: list[str]) -> None:
        for name in words:
            self._frame(name, "DISCONNECT", ["receipt:goodbye"])
            self._take(name, [("RECEIPT", ["receipt-id:goodbye"], "")], "")
            assert self.world.client(name).is_closed, f"{name} is not closed after DISCONNECT"

    def _receipt(self, words: list[str], headers: list[str]) -> None:
        self._take(words[0], [("RECEIPT", [f"receipt-id:{id}"], "") for id in words[1:]], "")

    def _error(self, words: list[str], headers: list[str]) -> None:
        client = self.world.client(words[0])
        frames = client.collect()
        assert frames, f"{words[0]} got no ERROR"
        wrong = difference(("ERROR", headers, "*"), frames[0], self.captures, exact=False)
        assert wrong is None, f"{words[0]}: {wrong} in\n{frames[0].text}"
        message = frames.pop(0).header("message") or ""
        wanted = " ".join(words[1:])
        assert wanted.lower() in message.lower(), f"{words[0]}: {wanted!r} is not in the message {message!r}"

    def _last_error(self, words: list[str], headers: list[str]) -> None:
        frames = self.world.client(words[0]).collect()
        del frames[:-1]
        self._error(words, headers)

    def _drain(self, words: list[str], headers: list[str]) -> None:
        frames = self.world.client(words[0]).collect()
        assert len(frames) >= int(words[1]), f"{words[0]} got only {len(frames)} frames"
        assert all(frame.command == "MESSAGE" for frame in frames), [frame.command for frame in frames]
        frames.clear()

    def _differ(self, words: list[str], headers: list[str]) -> None:
        assert len(set(words)) == len(words), f"{words} do not differ"

    def _nothing(self, words: list[str], headers: list[str]) -> None:
        for name in words:
            got = self.world.client(name).collect()
            assert not got, f"{name} got\n" + "\n".join(frame.text for frame in got)

    def _beats(self, words: list[str], headers: list[str]) -> None:
        name, count = words
        client = self.world.client(name)
        client.collect()
        fresh = client.stream.beats - self._claimed_beats.get(name, 0)
        assert fresh == int(count), f"{name} got {fresh} heart-beats"
        self._claimed_beats[name] = client.stream.beats

    # ---- connections and time --------------------------------------------------------------------

    def _each_client(self, words: list[str]) -> list[Client]:
        return [self.world.client(name) for name in words]

    def _drop(self, words: list[str], headers: list[str]) -> None:
        for client in self._each_client(words):
            client.drop()

    def _eof(self, words: list[str], headers: list[str]) -> None:
        for client in self._each_client(words):
            client.half_close()

    def _stall(self, words: list[str], headers: list[str]) -> None:
        for client in self._each_client(words):
            client.stall()

    def _read(self, words: list[str], headers: list[str]) -> None:
        for client in self._each_client(words):
            client.read_again()

    def _closed(self, words: list[str], headers: list[str]) -> None:
        for name in words:
            assert self.world.client(name).is_closed, f"{name} is still open"

    def _open(self, words: list[str], headers: list[str]) -> None:
        for name in words:
            assert not self.world.client(name).is_closed, f"{name} is closed"
            assert self.world.client(name).connection.session.is_open, f"{name} has no session"

    def _blocked(self, words: list[str], headers: list[str]) -> None:
        for name in words:
            client = self.world.client(name)
            assert client.connection.session.blocked_by is not None, f"{name} is not blocked"
            assert not client.transport.reading, f"the broker still reads from {name}"

    def _flowing(self, words: list[str], headers: list[str]) -> None:
        for name in words:
            client = self.world.client(name)
            assert client.connection.session.blocked_by is None, f"{name} is blocked"
            assert client.transport.reading, f"the broker does not read from {name}"

    def _alive(self, words: list[str], headers: list[str]) -> None:
        name, duration_ms = words
        self.world.advance(int(duration_ms))
        client = self.world.client(name)
        client.collect()
        assert client.stream.beats > self._claimed_beats.get(name, 0), f"no heart-beat for {name} in {duration_ms} ms"
        self._claimed_beats[name] = client.stream.beats

    def _beat_and_stay_alive(self, words: list[str], headers: list[str]) -> None:
        self._write(words[0], b"\n")
        self._alive(words, headers)

    def _beat_and_wait(self, words: list[str], headers: list[str]) -> None:
        self._write(words[0], b"\n")
        self.world.advance(int(words[1]))

    def _advance(self, words: list[str], headers: list[str]) -> None:
        self.world.advance(int(words[0]))

    # ---- the broker's inside ---------------------------------------------------------------------

    def _counts(self, words: list[str], headers: list[str]) -> None:
        queue = self.world.queue(words[0])
        wanted = {
            name: int(number)
            for name, number in zip(("messages", "delivering", "scheduled"), words[1:4], strict=True)
            if number != "*"
        }
        actual = {
            "messages": queue.message_count,
            "delivering": queue.delivering_count,
            "scheduled": len(queue.scheduled),
        }
        for word, number in zip(words[4::2], words[5::2], strict=True):
            wanted[word] = int(number)
            actual[word] = getattr(queue.tally, _TALLY_WORDS[word])
        actual = {name: number for name, number in actual.items() if name in wanted}
        assert actual == wanted, f"{queue.name} has {actual} instead of {wanted}"

    def _address(self, words: list[str], headers: list[str]) -> None:
        assert words[0] in self.world.broker.addresses, f"no address {words[0]}"
        address = self.world.broker.addresses[words[0]]
        actual = {
            "routed": address.routed_message_count,
            "unrouted": address.unrouted_message_count,
            "messages": address.account.message_count,
        }
        for word, number in zip(words[1::2], words[2::2], strict=True):
            assert actual[word] == int(number), f"{words[0]} has {actual}"

    def _no_address(self, words: list[str], headers: list[str]) -> None:
        assert words[0] not in self.world.broker.addresses, f"address {words[0]} is there"

    def _queue(self, words: list[str], headers: list[str]) -> None:
        self.world.queue(words[0])

    def _no_queue(self, words: list[str], headers: list[str]) -> None:
        assert words[0] not in self.world.broker.queues, f"queue {words[0]} is there"

    def _consumers(self, words: list[str], headers: list[str]) -> None:
        count = self.world.queue(words[0]).consumer_count
        assert count == int(words[1]), f"{words[0]} has {count} consumers"

    def _pause(self, words: list[str], headers: list[str]) -> None:
        self.world.queue(words[0]).pause()

    def _resume(self, words: list[str], headers: list[str]) -> None:
        self.world.queue(words[0]).resume()
        self.world.turns.schedule()
        self.world.settle()

    def _ring_size(self, words: list[str], headers: list[str]) -> None:
        self.world.broker.set_ring_size(words[0], int(words[1]))

    def _purge(self, words: list[str], headers: list[str]) -> None:
        self.world.queue(words[0]).remove_all()

    def _repeat(self, words: list[str], headers: list[str]) -> None:
        for index in range(1, int(words[0]) + 1):
            self.captures.values["i"] = str(index)
            line = [self._fill(word.replace("%i", str(index))) for word in words[1:]]
            rest = [header.replace("%i", str(index)) for header in headers]
            self._STEPS[line[0]](self, line[1:], rest)

    _STEPS: dict[str, Callable[[Player, list[str], list[str]], None]] = {
        "abort": _abort,
        "ack": _ack,
        "address": _address,
        "advance": _advance,
        "beats": _beats,
        "alive": _alive,
        "beat-and-stay-alive": _beat_and_stay_alive,
        "beat-and-wait": _beat_and_wait,
        "begin": _begin,
        "blocked": _blocked,
        "closed": _closed,
        "commit": _commit,
        "connect": _connect,
        "consumers": _consumers,
        "counts": _counts,
        "differ": _differ,
        "disconnect": _disconnect,
        "drain": _drain,
        "drop": _drop,
        "eof": _eof,
        "error": _error,
        "expect": _expect,
        "expect-any": _expect_any,
        "flowing": _flowing,
        "last-error": _last_error,
        "nack": _nack,
        "no-address": _no_address,
        "no-queue": _no_queue,
        "nothing": _nothing,
        "open": _open,
        "pause": _pause,
        "purge": _purge,
        "queue": _queue,
        "read": _read,
        "receipt": _receipt,
        "refuse": _refuse,
        "repeat": _repeat,
        "resume": _resume,
        "ring-size": _ring_size,
        "send": _send,
        "stall": _stall,
        "subscribe": _subscribe,
        "take": _take_each,
        "unsubscribe": _unsubscribe,
    }


def _parted(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    if "|" not in words:
        return list(words), []
    bar = words.index("|")
    return list(words[:bar]), list(words[bar + 1 :])
