"""What clients made and nobody uses any more goes: after a kill, and after the client that asked has gone."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.e2e.edited import text_of
from tests.e2e.management.told import Told, operated
from tests.kit.client import StompSocket

pytestmark = pytest.mark.e2e

_SOON: Final = "<address-queue-scan-period>50</address-queue-scan-period>"
_NEVER: Final = "<address-queue-scan-period>600000</address-queue-scan-period>"
_REPLIES: Final = 50


def test_nobody_returns_after_a_kill(tmp_path: Path) -> None:
    """Five clients read queues, five read topics, one sends to a topic without readers; then the power goes."""
    with operated(text_of(core=_SOON, persistent=True), tmp_path) as it:
        readers = [it.client() for _ in range(10)]
        for number, reader in enumerate(readers):
            reader.subscribe(f"/queue/work.{number}" if number < 5 else f"/topic/news.{number}")
        with it.client() as sender:
            sender.ask("SEND", {"destination": "/topic/nobody"}, b"x")
        assert len(it.broker.rows("queues")) == 11
        assert len(it.broker.rows("addresses")) == 12
        it.broker.kill()
    with operated(text_of(core=_NEVER, persistent=True), tmp_path) as it:
        assert it.broker.rows("queues").keys() == it.broker.rows("addresses").keys() == {"other"}
        it.broker.kill()


def test_what_somebody_may_come_back_for_goes_with_the_rounds(tmp_path: Path) -> None:
    """A queue that a client named in full waits for it; one with a message stays."""
    with operated(text_of(core=_NEVER, persistent=True), tmp_path) as it:
        reader = it.client()
        reader.subscribe("news::mine")
        with it.client() as sender:
            sender.ask("SEND", {"destination": "/queue/kept", "persistent": "true"}, b"x")
        it.broker.kill()
    with operated(text_of(core=_NEVER, persistent=True), tmp_path) as it:
        assert it.broker.rows("queues").keys() == {"other", "mine", "kept"}
        it.broker.kill()
    with operated(text_of(core=_SOON, persistent=True), tmp_path) as it:
        it.broker.eventually(
            "the rounds", lambda: it.broker.rows("addresses").keys(), lambda seen: seen == {"other", "kept"}
        )
        assert it.queue("kept")["messageCount"] == 1


def address_of_replies(it: Told, asker: StompSocket, number: int) -> str:
    """A client asks, and somebody reads where to reply."""
    asker.subscribe(f"/temp-queue/mine.{number}", id=str(number))
    asker.ask("SEND", {"destination": "/queue/questions", "reply-to": f"/temp-queue/mine.{number}"}, b"?")
    with it.client() as server:
        server.subscribe("/queue/questions")
        question = server.expect("MESSAGE")
        server.ask("ACK", {"id": question.header("ack")})
        return str(question.header("reply-to"))


def test_late_replies_leave_nothing(tmp_path: Path) -> None:
    """Neither in the broker nor in the journal, whoever sends them and however; and the sender goes on."""
    with operated(text_of(core=_NEVER, persistent=True), tmp_path) as it:
        asker = it.client()
        late = [address_of_replies(it, asker, number) for number in range(_REPLIES)]
        asker.close()
        it.broker.eventually(
            "the client has gone",
            lambda: it.broker.rows("addresses").keys(),
            lambda seen: seen == {"other", "questions"},
        )
        with it.client() as server:
            for place, address in enumerate(late):
                headers = {"destination": address, "persistent": "true", "_AMQ_DUPL_ID": f"reply {place}"}
                server.ask("SEND", headers, b"!")
                server.ask("SEND", {"destination": f"/queue/{address}"}, b"!")
            server.send("BEGIN", {"transaction": "t"})
            server.send("SEND", {"destination": late[0], "transaction": "t"}, b"!")
            server.ask("COMMIT", {"transaction": "t"})
        status, answer = it.ask("POST", f"/messages/{late[0]}", b"!")
        assert (status, answer["routed"]) == (409, False)
        with it.client() as curious:
            curious.send("SUBSCRIBE", {"id": "1", "destination": late[0]})
            assert "whose client has gone" in (curious.expect("ERROR").header("message") or "")
        assert it.broker.rows("queues").keys() == it.broker.rows("addresses").keys() == {"other", "questions"}
        assert it.broker.said.count("ART-1012") >= 1
        it.broker.kill()
    with operated(text_of(core=_NEVER, persistent=True), tmp_path) as it:
        assert it.broker.rows("addresses").keys() == {"other"}


def test_a_temporary_queue_outlasts_a_pause_of_its_client(tmp_path: Path) -> None:
    """Between two questions it is nobody's, and empty, for many rounds."""
    with operated(text_of(core=_SOON), tmp_path) as it, it.client() as asker:
        address = address_of_replies(it, asker, 7)
        asker.ask("UNSUBSCRIBE", {"id": 7})
        with it.client() as other:  # another queue comes and goes meanwhile, so rounds were made
            other.subscribe("/queue/passing")
        it.broker.eventually("rounds", lambda: it.broker.rows("addresses"), lambda seen: "passing" not in seen)
        with it.client() as server:
            server.ask("SEND", {"destination": address}, b"!")
        asker.subscribe("/temp-queue/mine.7", id="8")
        assert asker.expect("MESSAGE").body == b"!"
