"""Random inputs to everything that reads what strangers and operators write: a few in every run, a million each with
``make soak``, any number with ``--fuzz-inputs N``.
"""

from __future__ import annotations

import random
from itertools import repeat
from pathlib import Path

import pytest

from tests.fuzz.found import FOUND, Found
from tests.fuzz.fuzzing import Fuzzer, Input, Judge, TooLong, fuzz, limited_time, shrink
from tests.fuzz.table import FUZZERS

INPUTS = 1500
SOAK_INPUTS = 1_000_000
OUTCOMES_MIN = 10

each_fuzzer = pytest.mark.parametrize("name", FUZZERS)


@each_fuzzer
def test_some_inputs(name: str, tmp_path: Path, rng: random.Random) -> None:
    tally = fuzz(FUZZERS[name], tmp_path, rng, INPUTS)
    assert len(tally.outcomes) >= OUTCOMES_MIN, f"the inputs are too much alike: {tally}"


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.skipif("'slow' not in config.option.markexpr", reason="a million inputs: make soak")
@each_fuzzer
def test_very_many_inputs(
    name: str,
    tmp_path: Path,
    rng: random.Random,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    count: int = request.config.option.fuzz_inputs or SOAK_INPUTS
    tally = fuzz(FUZZERS[name], tmp_path, rng, count)
    with capsys.disabled():
        print(f"\n{name}: {tally}")


@pytest.mark.parametrize("found", FOUND, ids=[f"{found.fuzzer}: {found.name}" for found in FOUND])
def test_what_was_found(found: Found, tmp_path: Path) -> None:
    with limited_time():
        FUZZERS[found.fuzzer].open_judge(tmp_path)(found.input)


# ---- the fuzzing itself --------------------------------------------------------------------------


def _fuzzer(judge: Judge) -> Fuzzer:
    return Fuzzer("made", lambda rng: rng.randbytes(rng.randrange(40)), lambda _: judge, (b"deep",))


def _breaks(one: Input) -> str:
    assert one.data.count(b"d") < 3, "three of them"
    return "fine"


def test_a_failure_is_told_with_the_smallest_input(tmp_path: Path, rng: random.Random) -> None:
    with pytest.raises(AssertionError, match=r"three of them(?s:.*)Found\(\"made\", .*, Input\(\d+, b'ddd'\)\)"):
        fuzz(_fuzzer(_breaks), tmp_path, rng, 100_000)


def test_another_failure_is_not_taken_for_the_first() -> None:
    def judge(one: Input) -> str:
        if b"a" in one.data:
            raise ValueError("one")
        raise KeyError("other")

    with pytest.raises(ValueError, match="one") as raised:
        judge(Input(0, b"xxaxx"))
    assert shrink(judge, Input(0, b"xxaxx"), raised.value) == (0, b"a")


def test_what_takes_too_long_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.fuzzing.CPU_S_MAX", 0.05)
    with pytest.raises(TooLong), limited_time():
        any(not one for one in repeat(1))


def test_inputs_with_a_new_outcome_are_what_the_search_goes_on_from(tmp_path: Path, rng: random.Random) -> None:
    """Four tokens in a row, each of which tells that it was right."""
    wanted = b"deepdeepdeepdeep"

    def judge(one: Input) -> str:
        length = 4
        while one.data[:length] == wanted[:length] and length <= len(wanted):
            length += 4
        assert length <= len(wanted), "all of it"
        return str(length)

    with pytest.raises(AssertionError, match="all of it"):
        fuzz(_fuzzer(judge), tmp_path, rng, 100_000)
