"""The benchmark of a day of log: every answer has its rows, and reads what belongs to it; no JVM."""

from __future__ import annotations

from artemis_py.perf.scenario import Options
from bench.day import Day, measure_day
from bench.part import Extent


def test_questions_cost_what_they_return() -> None:
    day: Day = measure_day(Extent(Options(), 1, [], segments=120), lambda _line: None)
    assert day.missed == []
    answers = {one.question: one for one in day.answers}
    whole = answers["all messages"]
    assert whole.segments >= 120
    assert whole.rows == day.messages
    for question in ("a rare address", "address LIKE 'ra%'", "dead letters"):
        assert (answers[question].rows, answers[question].segments) == (1, 1)
        assert answers[question].size_bytes < whole.size_bytes / 120
    assert answers["one message"].segments == 1
    assert answers["queues, now"].segments <= 3
    assert day.beside_bytes < day.log_bytes / 10
    assert "| one address of ten |" in day.section()
    assert day.text().splitlines()[-1] == f"{day.told()}."
