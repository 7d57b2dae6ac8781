from __future__ import annotations

import io
import json
from unittest.mock import Mock

from artemis_py.perf.result import Outcome, Progress, as_json, table

RATE = "messages_per_second"


def test_the_table_is_aligned_and_shows_only_what_was_measured() -> None:
    fill = Outcome("7", "fill and drain", "bytes_per_message", [{"bytes_per_message": 201.4, "fill_per_second": 5e5}])
    head, first, second = table([Outcome("1", "transient", RATE, [{RATE: 1234567.8}]), fill], colour=False).splitlines()
    assert head == "   scenario        messages/s"
    assert first == "1  transient        1,234,568"
    assert second == "7  fill and drain           -  fill 500,000/s, resident per queued message 201 B"


def test_failures_follow_the_table() -> None:
    failed = Outcome("1", "transient", "messages_per_second", failures=["stalled: nothing moved"])
    assert table([failed], colour=False).splitlines()[-1] == "scenario 1 failed: stalled: nothing moved"
    assert "\x1b[31m" in table([failed], colour=True)


def test_json_has_medians_rounds_and_failures() -> None:
    found = json.loads(as_json("stomp://a:1", 2, [Outcome("1", "transient", RATE, [{RATE: 10.0}])]))
    assert found["url"] == "stomp://a:1"
    assert found["results"][0]["median"] == {"messages_per_second": 10.0}
    assert found["results"][0]["rounds"] == [{"messages_per_second": 10.0}]
    assert found["results"][0]["failures"] == []


def test_progress_writes_only_to_a_terminal() -> None:
    plain, terminal = io.StringIO(), Mock(wraps=io.StringIO(), **{"isatty.return_value": True})
    for stream in (plain, terminal):
        progress = Progress(stream)
        progress.label = "1"
        progress.show(lambda: "half")
        progress.show(lambda: "too soon after the first")
        progress.clear()
    assert plain.getvalue() == ""
    assert terminal.getvalue() == "\r\x1b[K1: half\r\x1b[K"
