"""``artemis-py events``: how it ends when the broker ends what it prints, or refuses it."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from artemis_py.cli import events
from artemis_py.cli.broker_http import BrokerHttp, RefusedError
from artemis_py.cli.main import main

HELLO = ["event: hello", 'data: {"broker": "b"}', ""]
WITHDRAWN = ["event: problem", 'data: {"error": "the permission for this was withdrawn"}', ""]
NO_QUEUE = ["event: problem", 'data: {"watch": "queues/q", "at": 7, "error": "there is no queue q"}', ""]


def run(monkeypatch: pytest.MonkeyPatch, answers: list[list[str] | RefusedError], *words: str) -> int:
    """The command, with a broker that answers one request after the other so."""
    monkeypatch.setattr(BrokerHttp, "lines", Mock(side_effect=answers))
    monkeypatch.setattr(events, "_RETRY_S", 0.0)
    return main(["events", "--url", "http://127.0.0.1:1", *words])


def test_when_the_broker_stops(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, [HELLO + NO_QUEUE]) == 0
    assert capsys.readouterr().err == ""


def test_when_the_permission_is_gone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, [HELLO + WITHDRAWN]) == 1
    assert "the broker has ended the events: the permission for this was withdrawn" in capsys.readouterr().err


@pytest.mark.parametrize("status", [401, 403])
def test_followed_until_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    answers: list[list[str] | RefusedError] = [
        HELLO + WITHDRAWN, RefusedError("b:1", "later", 503), HELLO, RefusedError("b:1", "not for you", status),
    ]  # fmt: skip
    assert run(monkeypatch, answers, "--follow") == 1
    assert BrokerHttp.lines.call_count == 4  # type: ignore[attr-defined]
    said = capsys.readouterr().err
    assert "was withdrawn; trying again" in said
    assert "later; trying again" in said
    assert said.rstrip().endswith("not for you")
