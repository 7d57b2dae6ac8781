"""A client's side of STOMP: what it writes, and what it reads, in each version."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.errors import StompError
from artemis_py.stomp.client import Client, FrameReader, ServerFrame, frame, head, header_line
from artemis_py.stomp.wire.dialect import decode_block
from artemis_py.stomp.wire.frames import VERSIONS, Limits

STREAM = (
    b"CONNECTED\nversion:1.2\n\n\0\n\n"
    b"MESSAGE\ncontent-length:3\nid:1\nid:2\n\na\0b\0\r\n"
    b"ERROR\r\nmessage:it broke\r\n\r\nlong\nstory\0"
    b"RECEIPT\nreceipt-id:a\\cb\\\\\n\n\0"
)
EXPECTED = [
    ServerFrame("CONNECTED", {"version": "1.2"}, b""),
    ServerFrame("MESSAGE", {"content-length": "3", "id": "1"}, b"a\0b"),
    ServerFrame("ERROR", {"message": "it broke"}, b"long\nstory"),
    ServerFrame("RECEIPT", {"receipt-id": "a:b\\"}, b""),
]


@pytest.mark.parametrize("step", [1, 2, 3, 5, 8, 13, 1000])
def test_frames_come_whole_wherever_the_reads_fall(step: int) -> None:
    reader = FrameReader()
    found: list[ServerFrame] = []
    for start in range(0, len(STREAM), step):
        reader.feed(STREAM[start : start + step])
        found += reader.frames()
    assert found == EXPECTED


def test_the_text_of_an_error_is_one_line() -> None:
    assert EXPECTED[2].text == "it broke | long story"
    assert ServerFrame("ERROR", {}, b"").text == "(no text)"
    assert ServerFrame("ERROR", {"message": "same"}, b"same").text == "same"


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (b"MESSAGE\ncontent-length:x\n\n\0", "not a number"),
        (b"MESSAGE\ncontent-length:1\n\nabc\0", "no NUL"),
        (b"HTTP/1.1 400 Bad Request\nnothing here\n\n\0", "without a colon"),
    ],
)
def test_what_is_not_stomp_is_refused(stream: bytes, text: str) -> None:
    reader = FrameReader()
    reader.feed(stream)
    with pytest.raises(StompError, match=text):
        reader.pop()


# ---- what it writes --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_a_login_is_never_escaped(version: str) -> None:
    """The specification: "CONNECT … frames MUST NOT escape"; the broker does not undo it."""
    block = Client((version,)).connect("host", "J\u00f6rg", "a:b\\c")
    assert "\nlogin:J\u00f6rg\npasscode:a:b\\c\n".encode() in block
    dialect = decode_block(block[:-3], version, Limits())
    assert dict(dialect[1])["passcode"] == "a:b\\c"


@pytest.mark.parametrize(
    ("version", "line"),
    [("1.0", b"a:x:y\\z\n"), ("1.1", b"a:x\\cy\\\\z\n"), ("1.2", b"a:x\\cy\\\\z\n")],
)
def test_a_value_is_written_as_its_version_says(version: str, line: bytes) -> None:
    assert header_line("a", "x:y\\z", version) == line


@pytest.mark.parametrize("version", VERSIONS)
@given(
    name=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
    value=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
)
def test_what_is_written_is_read_by_the_broker_and_by_itself(version: str, name: str, value: str) -> None:
    try:
        block = head("SEND", [(name, value)], version)
    except StompError:
        assert version != "1.2"
        return
    _, ((own_name, own_value),) = decode_block(block[:-1], version, Limits())
    assert (own_name, own_value) == (name, value.lstrip(" ") if version == "1.0" else value)
    reader = FrameReader(version)
    reader.feed(block + b"\n\0")
    assert reader.frames() == [ServerFrame("SEND", {name: value}, b"")]


@pytest.mark.parametrize(
    ("version", "name", "value"),
    [("1.0", "a", "x\ny"), ("1.0", "a:b", "x"), ("1.1", "a", "x\ry"), ("1.2", "a", "x\0y"), ("1.0", "a", "x\r")],
)
def test_what_a_version_cannot_carry_is_refused(version: str, name: str, value: str) -> None:
    with pytest.raises(StompError, match=r"cannot carry|nothing here can write"):
        header_line(name, value, version)


def test_a_login_makes_no_header_of_its_own() -> None:
    with pytest.raises(StompError):
        Client().connect("host", "eve\nlogin:admin", "x")


def test_a_body_with_a_nul_gets_its_length() -> None:
    assert frame("SEND", [("a", "b")], b"x\0y") == b"SEND\na:b\ncontent-length:3\n\nx\0y\0"
    assert frame("SEND", [("content-length", "3")], b"x\0y") == b"SEND\ncontent-length:3\n\nx\0y\0"
    assert frame("SEND", [("a", "b")], b"xy") == b"SEND\na:b\n\nxy\0"


# ---- a connection ----------------------------------------------------------------------------------


def test_connected_says_the_version_and_the_heart_beats() -> None:
    client = Client(("1.0", "1.1", "1.2"), beats_ms=(10_000, 10_000))
    assert b"\naccept-version:1.0,1.1,1.2\nhost:h\nheart-beat:10000,10000\n" in client.connect("h", None, None)
    client.feed(b"CONNECTED\nversion:1.1\nheart-beat:5000,20000\nsession:a\\cb\n\n\0\nMESSAGE\na:x\\cy\n\n\0")
    connected, message = client.frames()
    assert connected.headers["session"] == "a\\cb", "CONNECTED is not escaped, either"
    assert message.headers == {"a": "x:y"}
    assert (client.version, client.beat_s, client.silence_s) == ("1.1", 8.0, 30.0)


def test_no_heart_beats_are_agreed_on_where_one_side_has_none() -> None:
    client = Client(beats_ms=(10_000, 0))
    client.feed(b"CONNECTED\nversion:1.2\nheart-beat:5000,0\n\n\0")
    client.frames()
    assert (client.beat_s, client.silence_s) == (0.0, 0.0)


def test_it_needs_nothing_of_the_broker() -> None:
    """A worker of Spark imports it, and a load generator."""
    program = (
        "import sys, artemis_py.stomp.client; print(*sorted(n for n in sys.modules if n.startswith('artemis_py')))"
    )
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert {name for name in told.stdout.split() if not name.endswith("__mypyc")} == {
        "artemis_py", "artemis_py.errors", "artemis_py.log_codes", "artemis_py.message", "artemis_py.terminal_output",
        "artemis_py.stomp", "artemis_py.stomp.client", "artemis_py.units",
    }  # fmt: skip
