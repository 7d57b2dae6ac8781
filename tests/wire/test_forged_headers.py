"""No sender writes a header of the broker's own for a consumer, whichever versions the two speak.

Readers differ: some strip names, some take the last of repeated headers, some see a line end in every CR. This one does
all of it, so what it reads as the broker's is what the weakest of them would.
"""

from __future__ import annotations

from itertools import product

import pytest

from tests.kit.in_process import InProcessBroker, configuration

VERSIONS = ("1.0", "1.1", "1.2")
RESERVED = (
    "message-id", "subscription", "ack", "redelivered", "timestamp", "expires", "priority", "persistent",
    "content-length", "destination", "receipt", "transaction",
)  # fmt: skip
PATTERNS = (
    "{}", " {}", "{} ", "\t{}", "{}\t", "{}\\c", "{}\\cx", "\\n{}", "{}\\n", "x\\n{}", "{}\\r", "\\r{}", "{}\r",
    "{}\\\\", "x\\r{}", "x\r{}", "{}\x01", "\x0b{}", "{}\xa0", "\u2003{}", "x\\r\\n{}", "{}\\\\c",
)  # fmt: skip
VALUES = ("forged", "a\\n{}\\cforged", "a\\r{}\\cforged", "a\\r\\n{}\\cforged", "a\r{}:forged", "\\\\n{}:forged")
KNOWN = {"1.0": "ncr\\", "1.1": "nc\\", "1.2": "ncr\\"}
"""What may stand behind a backslash without the frame being refused (in 1.0 nothing of it is an escape)."""


def acceptable(text: str, version: str) -> bool:
    """Does a frame of this version with this in a header mean anything?"""
    escapes = text.replace("\\\\", "").split("\\")[1:]
    return all(one[:1] in KNOWN[version] for one in escapes) and not (version == "1.2" and "\r" in text)


def read_weakly(data: bytes) -> dict[str, set[str]]:
    """Every value that some reader would find under each name."""
    head = data.partition(b"\n\n")[0].decode()
    found: dict[str, set[str]] = {}
    for line in head.replace("\r", "\n").split("\n")[1:]:
        name, _, value = line.partition(":")
        name = name.strip().strip("".join(map(chr, range(33))))
        found.setdefault(name, set()).add(value)
    return found


@pytest.mark.parametrize(("sends", "reads"), list(product(VERSIONS, VERSIONS)))
def test_no_header_is_forged(sends: str, reads: str) -> None:
    world = InProcessBroker(configuration())
    sender, reader = world.client("sender").greet(version=sends), world.client("reader").greet(version=reads)
    reader.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\nconsumer-window-size:-1\n\n\0")
    world.settle()
    count = 0
    for name, pattern, value in product(RESERVED, PATTERNS, VALUES):
        line = f"{pattern.format(name)}:{value.format(name)}"
        same = pattern == "{}" and name in ("expires", "priority", "content-length", "destination", "transaction")
        if same or not acceptable(line, sends):
            continue
        sender.send(f"SEND\ndestination:/queue/q\nplain:1\n{line}\n\nbody\0".encode())
        data = bytes(reader.transport.taken)
        reader.transport.taken.clear()
        assert data.startswith(b"MESSAGE\n"), (line, sender.collect())
        assert data.endswith(b"\n\nbody\0\n"), line
        found = read_weakly(data)
        assert found["plain"] == {"1"}
        for reserved in RESERVED:
            values = found.get(reserved, set())
            assert len(values) <= 1, (line, data)
            assert not any("forged" in one for one in values), (line, data)
        count += 1
    assert count > 500, "most lines were left out"


def test_plain_names_pass_the_quick_way() -> None:
    """What is stripped is only what hides a name of the broker's own."""
    world = InProcessBroker(configuration())
    sender, reader = world.client("sender").greet(version="1.2"), world.client("reader").greet(version="1.2")
    reader.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:auto\n\n\0")
    for _ in range(3):
        sender.send(b"SEND\ndestination:/queue/q\n padded :1\nMessage-Id:2\nack:3\n ack:4\nother:5\n\nbody\0")
    world.settle()
    for message in reader.collect():
        assert [message.header(name) for name in (" padded ", "Message-Id", "other")] == ["1", "2", "5"]
        assert message.header("ack") is None
        assert message.header(" ack") is None
