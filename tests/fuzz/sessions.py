"""STOMP sessions: whatever a client sends to a whole broker, the broker's counts add up and others are served."""

from __future__ import annotations

import random

from artemis_py.core.events import GIVEN_UP, SET_ASIDE
from tests.fuzz import frames
from tests.fuzz.fuzzing import Fuzzer, Input, outcome_of
from tests.kit.conservation import check
from tests.kit.in_process import InProcessBroker, configuration

VERSIONS = (b"1.0", b"1.1", b"1.2")
PIECES = (1, 2, 7)
CORE = """
<message-expiry-scan-period>100</message-expiry-scan-period>
<address-settings>
  <address-setting match="tried">
    <max-delivery-attempts>2</max-delivery-attempts><redelivery-delay>50</redelivery-delay>
    <dead-letter-address>dead</dead-letter-address><expiry-address>dead</expiry-address>
  </address-setting>
  <address-setting match="fail">
    <max-size-messages>3</max-size-messages><address-full-policy>FAIL</address-full-policy>
  </address-setting>
  <address-setting match="full">
    <max-size-messages>2</max-size-messages><address-full-policy>BLOCK</address-full-policy>
  </address-setting>
</address-settings>
<addresses>
  <address name="tried"><anycast><queue name="tried"/></anycast></address>
  <address name="both"><anycast><queue name="both"/></anycast>
    <multicast><queue name="copy" ring-size="2"/></multicast></address>
</addresses>
"""
CONFIGS = (
    configuration(CORE),
    configuration(CORE, "maxSubscriptions=2;maxTransactions=1;maxHeaderBytes=500;maxBodyBytes=300"),
    configuration(CORE, "stompMinLargeMessageSize=20"),
    configuration(CORE + "<global-max-held-size>60K</global-max-held-size>"),
)
ADDRESSES = (
    "/queue/a", "/topic/a", "/topic/a.#", "full", "tried", "full", "fail", "both", "both\\c\\ccopy", "/queue/",
    "/temp-queue/x", "/topic/*", "a::b", "dead", "$sys",
)  # fmt: skip
HEADERS = (
    "receipt:1", "receipt:2", "persistent:true", "priority:9", "priority:x", "expires:1", "expires:99999999999999",
    "AMQ_SCHEDULED_DELAY:5", "AMQ_SCHEDULED_TIME:0", "_AMQ_DUPL_ID:d", "_AMQ_LVQ_NAME:k", "JMSXGroupID:g",
    "JMSXGroupSeq:-1", "selector:color = 'red'", "selector:a <", "ack:client", "ack:client-individual", "ack:never",
    "browser:true", "no-local:true", "consumer-window-size:0", "consumer-window-size:-1", "consumer-window-size:9",
    "consumer-priority:5", "durable-subscription-name:d", "client-id:c", "destination-type:MULTICAST", "color:red",
    "reply-to:/temp-queue/y", "content-type:text/plain", "content-length:0", "destination-type:x",
    "subscription-type:x", "correlation-id:\\c", "timestamp:0", "redelivered:true", "type:t", "JMSXUserID:me",
)  # fmt: skip
MADE = {
    "SEND": ("destination", "transaction"),
    "SUBSCRIBE": ("destination", "id"),
    "UNSUBSCRIBE": ("id", "destination"),
    "ACK": ("id", "message-id", "subscription", "transaction"),
    "NACK": ("id", "message-id", "subscription", "transaction"),
    "BEGIN": ("transaction",),
    "COMMIT": ("transaction",),
    "ABORT": ("transaction",),
    "DISCONNECT": ("receipt",),
    "CONNECT": ("accept-version", "heart-beat", "login", "passcode", "client-id", "host"),
}
COMMANDS = ("SEND",) * 5 + ("SUBSCRIBE",) * 4 + ("ACK", "ACK", "NACK") + tuple(MADE)
TOKENS = (*frames.TOKENS, *(f"{header}\n".encode() for header in HEADERS), *(name.encode() for name in ADDRESSES))
CONNECT = b"CONNECT\naccept-version:%s\nhost:x\n\n\0"


def _value(name: str, rng: random.Random) -> str:
    match name:
        case "destination":
            return rng.choice(ADDRESSES)
        case "transaction" | "id" | "subscription" | "receipt" | "client-id":
            return rng.choice(("1", "2", "t", "1-1", "2-2"))
        case "message-id":
            return str(rng.randrange(4))
        case "accept-version":
            return rng.choice(("1.0,1.1", "1.2", "9", ""))
        case "heart-beat":
            return rng.choice(("0,0", "1000,1000", "x", "-1,5", "99999999999,1"))
    return rng.choice(("", "x", "localhost"))


def conversation(rng: random.Random) -> bytes:
    """Frames that mostly make sense one after the other."""
    parts = [CONNECT % rng.choice(VERSIONS)] if rng.random() < 0.9 else []
    for _ in range(rng.randrange(1, 8)):
        command = rng.choice(COMMANDS)
        lines = [f"{name}:{_value(name, rng)}" for name in MADE[command] if rng.random() < 0.7]
        lines += rng.choices(HEADERS, k=rng.choice((0, 0, 1, 2)))
        body = b"x" * rng.choice((0, 1, 30, 400)) if command == "SEND" else b""
        parts.append("\n".join([command, *lines, "", ""]).encode() + body + b"\0")
    return b"".join(parts)


def judge(one: Input) -> str:
    """The client gets whole frames; nothing in the broker fails; what it kept for the client it lets go; it goes on."""
    world = InProcessBroker(CONFIGS[one.choice % len(CONFIGS)])
    client = world.client("one")
    step = len(one.data) // PIECES[one.choice // len(CONFIGS) % len(PIECES)] + 1
    for start in range(0, len(one.data), step):
        client.send(one.data[start : start + step])
    got = list(client.collect())
    world.advance(1 + one.choice % 300)
    got = list(client.collect())
    check(world)
    if one.choice & 1024 and not client.is_closed:
        client.half_close()
    client.drop()
    check(world)
    judge_after(world)
    assert client.stream.is_whole or not client.is_closed, "half a frame"
    if not got:
        return "nothing"
    reason = outcome_of(ValueError(got[-1].header("message") or ""))
    return f"{' '.join(frame.command for frame in got[:6])} {reason if got[-1].command == 'ERROR' else ''}"


def judge_after(world: InProcessBroker) -> None:
    """Nothing in the broker has failed, nothing is held for a client that is gone, and another one is served."""
    assert not any(world.stats.faults.counts.values()), f"a step failed: {world.stats.faults.counts}"
    noted = world.broker.events.counts
    assert not {SET_ASIDE, GIVEN_UP} & noted.keys(), f"a step of a queue failed: {noted}"
    held = world.broker.holdings.by_kind()
    for kind in ("connections", "input", "output", "transactions"):
        assert held[kind] == 0, f"{held[kind]} bytes of {kind} are held for nobody"
    other = world.client("other")
    other.send(CONNECT % b"1.2")
    other.send(b"SUBSCRIBE\nid:1\ndestination:/queue/other\n\n\0SEND\ndestination:/queue/other\n\nhello\0")
    answers = other.collect()
    commands = [frame.command for frame in answers]
    if "ERROR" in commands:
        assert "held" in str(answers[-1].text), f"another client is refused: {answers[-1].text}"
        return
    assert commands == ["CONNECTED", "MESSAGE"], f"another client gets {commands}"


SESSIONS = Fuzzer("sessions", conversation, lambda _: judge, TOKENS)
