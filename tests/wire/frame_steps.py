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


def unsubscribe(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.frame(words[0], "UNSUBSCRIBE", [f"id:{words[1]}", *headers])


def disconnect(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for name in words:
        stage.frame(name, "DISCONNECT", ["receipt:goodbye"])
        stage.take(name, [("RECEIPT", ["receipt-id:goodbye"], "")], "")
        assert stage.world.client(name).is_closed, f"{name} is not closed after DISCONNECT"


def begin(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.frame(words[0], "BEGIN", [f"transaction:{words[1]}", *headers])


def commit(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.frame(words[0], "COMMIT", [f"transaction:{words[1]}", *headers])


def abort(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.frame(words[0], "ABORT", [f"transaction:{words[1]}", *headers])


def ack(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    _settle(stage, "ACK", words, headers)


def nack(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    _settle(stage, "NACK", words, headers)


def _settle(stage: TranscriptRun, command: str, words: Words, headers: Headers) -> None:
    name, *bodies = words
    for body in bodies:
        message = stage.delivered[name][body]
        id = f"message-id:{message.header('message-id')}"
        subscription = f"subscription:{message.header('subscription')}"
        means = {"1.0": [id], "1.1": [id, subscription], "1.2": [f"id:{message.header('ack')}"]}[stage.version]
        stage.frame(name, command, [*means, *headers])


def expect(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.take(words[0], [("MESSAGE", headers, body) for body in words[1:]], "")


def expect_any(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.take(words[0], [("MESSAGE", headers, body) for body in words[1:]], "?")


def take_each(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    name, *bodies = words
    for body in bodies:
        expect(stage, [name, body], headers)
        ack(stage, [name, body], [])


def refuse(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    nack(stage, words, headers)
    expect(stage, words, ["redelivered:true"])


def receipt(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    stage.take(words[0], [("RECEIPT", [f"receipt-id:{id}"], "") for id in words[1:]], "")


def error(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    client = stage.world.client(words[0])
    frames = client.collect()
    assert frames, f"{words[0]} got no ERROR"
    wrong = difference(("ERROR", headers, "*"), frames[0], stage.captures, exact=False)
    assert wrong is None, f"{words[0]}: {wrong} in\n{frames[0].text}"
    message = frames.pop(0).header("message") or ""
    wanted = " ".join(words[1:])
    assert wanted.lower() in message.lower(), f"{words[0]}: {wanted!r} is not in the message {message!r}"


def last_error(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    frames = stage.world.client(words[0]).collect()
    del frames[:-1]
    error(stage, words, headers)


def drain(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    frames = stage.world.client(words[0]).collect()
    assert len(frames) >= int(words[1]), f"{words[0]} got only {len(frames)} frames"
    assert all(frame.command == "MESSAGE" for frame in frames), [frame.command for frame in frames]
    frames.clear()


def leftovers(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for name in words:
        stage.world.client(name).collect().clear()


def nothing(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    for name in words:
        got = stage.world.client(name).collect()
        assert not got, f"{name} got\n" + "\n".join(frame.text for frame in got)


def differ(stage: TranscriptRun, words: Words, headers: Headers) -> None:
    assert len(set(words)) == len(words), f"{words} do not differ"


FRAME_STEPS: dict[str, StepFunction] = {
    "abort": abort,
    "ack": ack,
    "begin": begin,
    "commit": commit,
    "connect": connect,
    "differ": differ,
    "disconnect": disconnect,
    "drain": drain,
    "error": error,
    "expect": expect,
    "expect-any": expect_any,
    "last-error": last_error,
    "nack": nack,
    "leftovers": leftovers,
    "nothing": nothing,
    "receipt": receipt,
    "refuse": refuse,
    "send": send,
    "subscribe": subscribe,
    "take": take_each,
    "unsubscribe": unsubscribe,
}
