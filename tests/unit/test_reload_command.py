"""``artemis-py broker reload``: what it ends with when something stays as it was."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest

from artemis_py.cli.broker_http import BrokerHttp
from artemis_py.cli.main import main

FAILURE = "acceptor web: port 8161 is in use"


@pytest.mark.parametrize("failures", [[], [FAILURE]])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_it_ends_with_1_when_something_stayed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failures: list[str], form: list[str]
) -> None:
    result = "partly" if failures else "applied"
    answer = {"result": result, "failures": failures, "changes": [], "removedMessages": 0}
    monkeypatch.setattr(BrokerHttp, "ask", Mock(return_value=json.dumps(answer).encode()))
    code = main(["broker", "reload", "--yes", "--url", "http://127.0.0.1:1", *form])
    said = capsys.readouterr().err
    assert (code, said) == ((1, f"not done, and stays as it was: {FAILURE}\n") if failures else (0, ""))
