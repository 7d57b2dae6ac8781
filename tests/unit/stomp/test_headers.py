"""Header blocks, decoded as each version says."""

from __future__ import annotations

import pytest

from artemis_py.stomp.wire.dialect import decode_block, first_of_each, parse_content_length
from artemis_py.stomp.wire.frames import FrameError, Limits

ALL = ("1.0", "1.1", "1.2")
LIMITS = Limits(header_line_bytes_max=100, headers_max=5, body_bytes_max=1000)


def decoded(lines: bytes, version: str, command: bytes = b"SEND") -> list[tuple[str, str]]:
    return decode_block(command + b"\n" + lines, version, LIMITS)[1]


@pytest.mark.parametrize("version", ALL)
def test_names_and_values(version: str) -> None:
    command, headers = decode_block("SUBSCRIBE\nid:1\nempty:\ngrüße:€".encode(), version, LIMITS)
    assert command == "SUBSCRIBE"
    assert headers == [("id", "1"), ("empty", ""), ("grüße", "€")]


@pytest.mark.parametrize(
    ("version", "line", "header"),
    [
        ("1.0", rb"a:\n\c\\\r\t", ("a", r"\n\c\\\r\t")),
        ("1.0", b"a:  b ", ("a", "b ")),
        ("1.0", b"a:b:c", ("a", "b:c")),
        ("1.1", rb"a\c\n\\:b\c\n\\", ("a:\n\\", "b:\n\\")),
        ("1.1", b" a : b ", (" a ", " b ")),
        ("1.1", b"a:b:c", ("a", "b:c")),
        ("1.2", rb"a\c\n\\\r:b\c\n\\\r", ("a:\n\\\r", "b:\n\\\r")),
        ("1.2", rb"a:\\n\\\\c", ("a", r"\n\\c")),
        ("1.2", b" a : b ", (" a ", " b ")),
    ],
)
def test_escapes_and_blanks(version: str, line: bytes, header: tuple[str, str]) -> None:
    assert decoded(line, version) == [header]


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("text", [rb"\t", rb"\x", rb"\N", rb"\ ", "\\é".encode(), rb"a\\\x"])
@pytest.mark.parametrize("line", [b"a:%b", b"%b:a"])
def test_undefined_escapes(version: str, text: bytes, line: bytes) -> None:
    with pytest.raises(FrameError, match="escape"):
        decoded(line % text, version)


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_a_backslash_at_the_end(version: str) -> None:
    with pytest.raises(FrameError, match="escape"):
        decoded(b"a:b\\", version)


def test_carriage_return_escape_is_of_1_2() -> None:
    with pytest.raises(FrameError, match="escape"):
        decoded(rb"a:\r", "1.1")
    assert decoded(rb"a:\r", "1.2") == [("a", "\r")]


@pytest.mark.parametrize("command", [b"CONNECT", b"STOMP"])
def test_connect_is_not_unescaped(command: bytes) -> None:
    assert decoded(rb"passcode:a\cb\t", "1.2", command) == [("passcode", r"a\cb\t")]


def test_carriage_return_in_a_line() -> None:
    with pytest.raises(FrameError, match="carriage return"):
        decoded(b"a:b\rc", "1.2")


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("line", [b"no colon", b":no name", b""])
def test_lines_that_are_no_headers(version: str, line: bytes) -> None:
    with pytest.raises(FrameError):
        decoded(line, version)


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("command", [b"", b"send", b"Send", b"SEND ", b" SEND", b"MESSAGE", b"CONNECTED", b"RECEIPT"])
def test_commands_that_clients_do_not_have(version: str, command: bytes) -> None:
    with pytest.raises(FrameError, match="command"):
        decoded(b"a:b", version, command)


def test_lower_case_is_hinted_at() -> None:
    with pytest.raises(FrameError, match="capitals"):
        decoded(b"a:b", "1.2", b"subscribe")


@pytest.mark.parametrize("version", ALL)
def test_not_utf_8(version: str) -> None:
    with pytest.raises(FrameError, match="UTF-8"):
        decoded(b"a:\xff", version)


@pytest.mark.parametrize("version", ALL)
def test_limits(version: str) -> None:
    assert len(decoded(b"a:b\n" * 4 + b"a:b", version)) == 5
    with pytest.raises(FrameError, match="at most 5"):
        decoded(b"a:b\n" * 5 + b"a:b", version)
    assert decoded(b"a:" + b"x" * 98, version) == [("a", "x" * 98)]
    with pytest.raises(FrameError, match="at most 100"):
        decoded(b"a:" + b"x" * 99, version)


def test_the_first_of_each() -> None:
    assert first_of_each([("a", "1"), ("b", "2"), ("a", "3")]) == {"a": "1", "b": "2"}


def test_content_length() -> None:
    assert parse_content_length("0", LIMITS) == 0
    assert parse_content_length("007", LIMITS) == 7
    assert parse_content_length("1000", LIMITS) == 1000
    for text in ("1001", "9" * 30, "-1", "+1", "", "1 ", "²", "٣", "1e3", "0x1"):
        with pytest.raises(FrameError):
            parse_content_length(text, LIMITS)
