"""The benchmark of fairness models."""

from __future__ import annotations

import pytest

from bench import fairness
from bench.fairness import MODELS, Fairness, measure, rows_of


@pytest.mark.parametrize("model", MODELS)
def test_each_step_is_measured(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every backlog is full at the end, or the measurement would fail."""
    monkeypatch.setattr(fairness, "SUBSCRIPTIONS", (1, 4))
    monkeypatch.setattr(fairness, "_MOVED", 100)
    monkeypatch.setattr(fairness, "_SINGLE", 20)
    costs = measure(model, depth=200, rounds=2)
    steps = ("arrive", "dispatch", "lease", "acknowledge")
    for spent in costs.values():
        assert spent.keys() == {*steps, "alone", "expire", "again", "together", "with an expiry"}
        assert spent["together"] == pytest.approx(
            [sum(some) for some in zip(*[spent[name] for name in steps], strict=True)]
        )
        assert all(seconds >= 0 for found in spent.values() for seconds in found)
    rows = rows_of(model, costs)
    assert [row[:2] for row in rows] == [[model, "1"], [model, "4"]]
    [in_page] = Fairness(rows).page_tables()
    assert [row[:2] for row in in_page.rows[1:]] == [[model, "4"]]
