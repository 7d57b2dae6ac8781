"""Fuzzing: random inputs, as many as wanted, and a judge that no input may surprise.

An input is made by a grammar, or taken from the pool, and then mostly damaged. The pool has inputs whose outcome was
new, so that the search goes on from where it found something. A failure is made as small as it gets; it then becomes a
row in ``found.py``.
"""

from __future__ import annotations

import ctypes
import gc
import random
import re
import resource
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from artemis_py.errors import Problem

CPU_S_MAX: Final = 2.0
"""The CPU time that one input may take, many times what any needs."""
POOL_MAX: Final = 2000
OUTCOMES_MAX: Final = 20_000
"""Later ones are counted as ``OTHER``: what a run remembers must not look like what its subject keeps."""
OTHER: Final = "another outcome"
INPUT_BYTES_MAX: Final = 4096
SHRINK_TRIES_MAX: Final = 4000
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\d+|\S*\.\S+|\S{16,}")


class Input(NamedTuple):
    """``choice`` decides what is around the bytes: a version, how they are cut, what is configured."""

    choice: int
    data: bytes


Judge = Callable[[Input], str]
"""Raises if the input does harm; returns what came of it, in few words."""


@dataclass(frozen=True)
class Fuzzer:
    """What is fuzzed. ``open_judge`` gets a folder of its own; ``tokens`` are what damage is made of;
    ``growth_bytes_max`` is what the process may grow by after the first tenth of the inputs.
    """

    name: str
    make: Callable[[random.Random], bytes]
    open_judge: Callable[[Path], Judge]
    tokens: Sequence[bytes]
    growth_bytes_max: int = 96 << 20


class TooLong(BaseException):  # the broker's own guards catch every Exception
    """An input took more CPU time than any may."""


@dataclass
class Tally:
    """What a run saw: how many inputs, and how often each outcome came."""

    inputs: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        often = sorted(self.outcomes, key=self.outcomes.__getitem__, reverse=True)[:5]
        shown = "; ".join(f"{self.outcomes[each] / self.inputs:.1%} {each[:60]!r}" for each in often)
        return f"{self.inputs:,} inputs, {len(self.outcomes):,} outcomes: {shown}"


def fuzz(fuzzer: Fuzzer, folder: Path, rng: random.Random, count: int) -> Tally:
    """So many inputs. Raises AssertionError with the smallest input that still fails in the way the first one did."""
    judge = fuzzer.open_judge(folder)
    tally = Tally()
    pool: list[Input] = []
    settled_bytes = 0
    for number in range(count):
        one = _next(fuzzer, pool, rng)
        failure: BaseException | None = None
        with limited_time():
            try:
                outcome = judge(one)
            except (Exception, TooLong) as error:
                failure = error
        if failure is not None:
            small = shrink(judge, one, failure)
            raise AssertionError(
                f"{fuzzer.name}: input {number} fails with {type(failure).__name__}: {failure}\n"
                f"a row for tests/fuzz/found.py, as small as it gets:\n"
                f'    Found("{fuzzer.name}", "what it does", Input({small.choice}, {small.data!r})),'
            ) from failure
        tally.inputs += 1
        if outcome not in tally.outcomes:
            if len(pool) < POOL_MAX:
                pool.append(one)
            else:
                pool[rng.randrange(POOL_MAX)] = one
            if len(tally.outcomes) >= OUTCOMES_MAX:
                outcome = OTHER
            tally.outcomes.setdefault(outcome, 0)
        tally.outcomes[outcome] += 1
        if number == count // 10:
            settled_bytes = _kept_bytes()
    grown_bytes = _kept_bytes() - settled_bytes
    assert grown_bytes <= fuzzer.growth_bytes_max, f"{fuzzer.name}: {grown_bytes >> 20} MiB more after {tally}"
    return tally


def outcome_of(error: Exception) -> str:
    """A refusal as an outcome: its kind and text, without what it quotes from the input."""
    return f"{type(error).__name__}: {_QUOTED.sub('…', str(error))[:200]}"


def judge_problems(problems: Iterable[Problem], data: bytes) -> None:
    """Each problem has a place in the data, and is a line of text."""
    lines = data.count(b"\n") + data.count(b"\r") + 2
    for problem in problems:
        assert 0 <= problem.line <= lines, f"line {problem.line} of {lines}"
        assert str(problem).isprintable(), f"no line of text: {problem!s}"


def _next(fuzzer: Fuzzer, pool: list[Input], rng: random.Random) -> Input:
    if pool and rng.random() < 0.5:
        choice, data = rng.choice(pool)
    else:
        choice, data = rng.getrandbits(16), fuzzer.make(rng)
    if rng.random() < 0.05:
        choice = rng.getrandbits(16)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        data = damage(data, fuzzer.tokens, rng)
    if pool and rng.random() < 0.1:
        other = rng.choice(pool).data
        data = data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]
    return Input(choice, data[:INPUT_BYTES_MAX])


def damage(data: bytes, tokens: Sequence[bytes], rng: random.Random) -> bytes:
    """The data, changed at one place."""
    start = rng.randint(0, len(data))
    end = min(len(data), start + rng.choice((1, 1, 2, 4, 16, 64)))
    match rng.randrange(8):
        case 0:
            return data[:start] + rng.randbytes(rng.randint(1, 3)) + data[start:]
        case 1:
            return data[:start] + data[end:]
        case 2:
            return data[:start] + bytes(byte ^ 1 << rng.randrange(8) for byte in data[start : start + 1]) + data[end:]
        case 3:
            return data[:end] + data[start:end] * rng.choice((1, 1, 1, 40)) + data[end:]
        case 4:
            return data[:start] if rng.random() < 0.3 else data[start:] + data[:start]
        case 5:
            return data[:start] + rng.choice(tokens) + data[end:]
        case _:
            return data[:start] + rng.choice(tokens) + data[start:]


# ---- time and memory -----------------------------------------------------------------------------


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TooLong(f"more than {CPU_S_MAX:g} s of CPU time")


@contextmanager
def limited_time() -> Iterator[None]:
    """Raises TooLong in a block that takes more CPU time than any input may."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _kept_bytes() -> int:
    """What the process keeps: without garbage, and without what is free in malloc's heap, which a million short-lived
    inputs leave in ever more pieces.
    """
    gc.collect()
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


# ---- the smallest input --------------------------------------------------------------------------


def shrink(judge: Judge, one: Input, failure: BaseException) -> Input:
    """The input with all left out that the failure does not need, and the rest plain where that does not matter."""
    wanted = _place_of(failure)
    tries = 0

    def fails(data: bytes) -> bool:
        nonlocal tries
        tries += 1
        try:
            with limited_time():
                judge(Input(one.choice, data))
        except (Exception, TooLong) as error:
            return _place_of(error) == wanted
        return False

    data, size = one.data, max(len(one.data) // 2, 1)
    while size and tries < SHRINK_TRIES_MAX:
        start, is_smaller = 0, False
        while start < len(data) and tries < SHRINK_TRIES_MAX:
            less = data[:start] + data[start + size :]
            if fails(less):
                data, is_smaller = less, True
            else:
                start += size
        size = size if is_smaller and size == 1 else size // 2
    for start in range(len(data)):
        plain = data[:start] + b"x" + data[start + 1 :]
        if data[start : start + 1] not in b"x\0\r\n:= " and tries < SHRINK_TRIES_MAX and fails(plain):
            data = plain
    return Input(one.choice, data)


def _place_of(error: BaseException) -> tuple[str, str, int]:
    """Where a failure was raised, so that another one is not taken for it."""
    if isinstance(error, TooLong):
        return "TooLong", "", 0
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return type(error).__name__, trace.tb_frame.f_code.co_filename if trace else "", trace.tb_lineno if trace else 0
