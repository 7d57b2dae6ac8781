"""Every transcript, in each of its versions: with whole frames, byte by byte, and divided in two at many places."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.kit.in_process import Client, InProcessBroker
from tests.kit.web_client import BinaryWebClient, SlowWebClient, WebClient
from tests.wire.bodies import bodies_on_queues, files_of
from tests.wire.cutting import byte_by_byte, divided, places, whole
from tests.wire.player import play
from tests.wire.transcript import read_transcript

TINY_PLACES = 10
DIRECTORY = Path(__file__).parent / "transcripts"
FILES = sorted(DIRECTORY.rglob("*.stomp"))
CASES = [
    pytest.param(path, version, id=f"{path.parent.name}/{path.stem}-{version}")
    for path in FILES
    for version in read_transcript(path).versions
]

ABOUT_MEMORY = frozenset(
    {"block_bytes", "check_28_transaction_bytes", "check_28_unread_messages", "drop_bytes", "fail_bytes"}
)
"""Transcripts in which bodies fill something up that they do not fill from a file."""

WEB_CASES = [case for case in CASES if case.values[1] == "1.2" and case.id != "checks/check_28_connections-1.2"]
"""Without the client that is refused before it has said a word, which need not be a request."""

SLOW_WEB_CASES = [case for case in WEB_CASES[1::8] if not str(case.id).startswith("turns/")]
"""Without those about what happens in one turn: so many small messages need several."""

LONGEST: dict[tuple[Path, str], int] = {}
"""How many bytes the longest write of a transcript has that was played whole."""

pytestmark = pytest.mark.wire


@pytest.mark.parametrize(("path", "version"), CASES)
def test_whole(path: Path, version: str) -> None:
    """Each write of a client arrives in one piece."""
    LONGEST[path, version] = play(read_transcript(path), version, whole).longest_bytes


@pytest.mark.parametrize(("path", "version"), CASES)
def test_byte_by_byte(path: Path, version: str) -> None:
    """Each byte arrives alone, with a turn of the broker after it."""
    play(read_transcript(path), version, byte_by_byte)


@pytest.mark.parametrize(("path", "version"), CASES)
def test_divided_in_two(path: Path, version: str, turns_of_any_size: str, rng: random.Random) -> None:
    """Each write arrives in two pieces, wherever it is divided; with tiny turns at some places, others in each run."""
    transcript = read_transcript(path)
    longest_bytes = LONGEST.get((path, version)) or play(transcript, version, whole).longest_bytes
    sizes = places(longest_bytes, transcript.splits)
    if turns_of_any_size == "tiny turns":
        sizes = rng.sample(sizes, min(TINY_PLACES, len(sizes)))
    for size in sizes:
        try:
            play(transcript, version, partial(divided, size))
        except AssertionError as error:
            raise AssertionError(f"divided after {size} bytes: {error}") from error


@pytest.mark.parametrize(
    ("path", "version"), [case for case in CASES if Path(str(case.values[0])).stem not in ABOUT_MEMORY]
)
def test_every_body_in_a_file(path: Path, version: str) -> None:
    """The same with bodies of one byte counted as large; in the end there are files for what is there, no others."""
    transcript = read_transcript(path)
    acceptor = ";".join(filter(None, (transcript.acceptor, "stompMinLargeMessageSize=1")))
    world = play(replace(transcript, acceptor=acceptor), version, whole).world
    for client in world.clients.values():
        client.drop()
    assert files_of(world) == bodies_on_queues(world)


@pytest.mark.parametrize(("path", "version"), WEB_CASES)
def test_over_websocket(path: Path, version: str) -> None:
    """Each write of a client is a message, or several."""
    play(read_transcript(path), version, whole, WebClient)


@pytest.mark.parametrize("connect", [BinaryWebClient, SlowWebClient])
@pytest.mark.parametrize(("path", "version"), WEB_CASES[::8])
def test_some_over_websocket(path: Path, version: str, connect: Callable[[InProcessBroker], Client]) -> None:
    """Binary messages only, or a stream that arrives byte by byte."""
    play(read_transcript(path), version, whole, connect)


@pytest.mark.parametrize(("path", "version"), SLOW_WEB_CASES)
def test_some_over_websocket_byte_by_byte(path: Path, version: str) -> None:
    """Each byte of STOMP is a message of its own."""
    play(read_transcript(path), version, byte_by_byte, BinaryWebClient)
