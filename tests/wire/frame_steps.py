"""Steps that send a frame, or look at the frames that came.

With ``C`` a client and ``name:value`` headers behind a ``|``: ``connect C… | headers``; ``send C DESTINATION BODY… |
headers`` (one frame each); ``subscribe C ID DESTINATION [ACK] | headers``; ``unsubscribe C ID``; ``begin C T``,
``commit C T``, ``abort C T``; ``disconnect C…`` (with its receipt); ``ack C BODY…``, ``nack C BODY…`` (of the last
message received with that body).

``expect C BODY… | headers``: MESSAGE frames in this order, each with these headers; ``expect-any`` in any order;
``take C BODY…`` expects and acknowledges one by one; ``refuse C BODY`` is a NACK after which the message comes again;
``receipt C ID…``; ``error C [WORDS IN THE MESSAGE] | headers``, ``last-error`` whatever came before it; ``drain C N``:
N or more MESSAGE frames, whatever they say; ``nothing C…``; ``leftovers C…``: whatever came is
not looked at; ``differ VALUE…``.
"""

from __future__ import annotations

from tests.wire.broker_steps import equal
from tests.wire.matching import difference
from tests.wire.transcript_run import StepFunction, TranscriptRun

Words = list[str]
Headers = list[str]


def connect(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for name in words:
        stage.frame(name, "CONNECT", [f"accept-version:{stage.version}", "host:broker", *headers])
        stage.take(name, [("CONNECTED", [f"version:{stage.version}"], "")], "")


def send(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    name, destination, *bodies = words
    for body in bodies:
        stage.frame(name, "SEND", [f"destination:{destination}", *headers], body)


def subscribe(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    name, id, destination, *ack = words
    stage.frame(name, "SUBSCRIBE", [f"id:{id}", f"destination:{destination}", f"ack:{[*ack, 'auto'][0]}", *headers])


def disconnect(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for name in words:
        stage.frame(name, "DISCONNECT", ["receipt:goodbye"])
        stage.take(name, [("RECEIPT", ["receipt-id:goodbye"], "")], "")
        assert stage.world.client(name).is_closed, f"{name} is not closed after DISCONNECT"


def settle(stage: TranscriptRun, command: str, words: Words, headers: Headers) -> None:
    name, *bodies = words
    for body in bodies:
        names = stage.delivered[name][body].names(stage.version)
        stage.frame(name, command, [*(names[:1] if stage.version == "1.0" else names), *headers])


def expect(stage: TranscriptRun, words: Words, headers: Headers, mode: str = "") -> None:
    stage.take(words[0], [("MESSAGE", headers, body) for body in words[1:]], mode)


def frame(command: str, header: str) -> StepFunction:
    """A step that sends a frame which names one thing."""
    return lambda stage, words, headers: stage.frame(words[0], command, [f"{header}:{words[1]}", *headers])


def error(stage: TranscriptRun, words: Words, headers: Headers, *, last: bool = False) -> None:
    frames = stage.world.client(words[0]).collect()
    del frames[: -1 if last else 0]
    assert frames, f"{words[0]} got no ERROR"
    wrong = difference(("ERROR", headers, "*"), frames[0], stage.values, exact=False)
    assert wrong is None, f"{words[0]}: {wrong} in\n{frames[0].text}"
    message = frames.pop(0).header("message") or ""
    wanted = " ".join(words[1:])
    assert wanted.lower() in message.lower(), f"{words[0]}: {wanted!r} is not in the message {message!r}"


def drain(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    frames = stage.world.client(words[0]).collect()
    assert len(frames) >= int(words[1]), f"{words[0]} got only {len(frames)} frames"
    assert all(frame.command == "MESSAGE" for frame in frames), [frame.command for frame in frames]
    frames.clear()


FRAME_STEPS: dict[str, StepFunction] = {
    "abort": frame("ABORT", "transaction"),
    "ack": lambda stage, words, headers: settle(stage, "ACK", words, headers),
    "begin": frame("BEGIN", "transaction"),
    "commit": frame("COMMIT", "transaction"),
    "connect": connect,
    "differ": lambda _, words, __: equal(len(set(words)), len(words), "values that differ"),
    "disconnect": disconnect,
    "drain": drain,
    "error": error,
    "expect": expect,
    "expect-any": lambda stage, words, headers: expect(stage, words, headers, "?"),
    "last-error": lambda stage, words, headers: error(stage, words, headers, last=True),
    "nack": lambda stage, words, headers: settle(stage, "NACK", words, headers),
    "leftovers": lambda stage, words, _: [stage.world.client(name).collect().clear() for name in words],
    "nothing": lambda stage, words, _: [
        equal([frame.text for frame in stage.world.client(name).collect()], [], f"{name} got") for name in words
    ],
    "receipt": lambda stage, words, _: stage.take(
        words[0], [("RECEIPT", [f"receipt-id:{id}"], "") for id in words[1:]], ""
    ),
    "refuse": lambda stage, words, headers: (
        settle(stage, "NACK", words, headers), expect(stage, words, ["redelivered:true"]),
    ),
    "send": send,
    "subscribe": subscribe,
    "take": lambda stage, words, headers: [
        (expect(stage, [words[0], body], headers), settle(stage, "ACK", [words[0], body], [])) for body in words[1:]
    ],
    "unsubscribe": frame("UNSUBSCRIBE", "id"),
}  # fmt: skip
