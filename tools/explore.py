"""Looks for faults that the seed of the commit does not show: runs tests with new seeds, round after round.

`make explore ROUNDS=20` runs those that draw what they do, `make flaky` all of them. `make explore ARGS='tests/sim -k
torn'` looks at these tests alone: what is not for this program is for pytest.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

SUITES: Final = ("tests/model", "tests/sim", "tests/fuzz")
TESTS_FAILED: Final = 1
"""pytest's exit code; with any other the next round would be no better."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when every round passed, else the first exit code of pytest that says otherwise."""
    parser = argparse.ArgumentParser(prog="python tools/explore.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how many new seeds (default 3)")
    given, options = parser.parse_known_args(arguments)
    if given.rounds < 1:
        parser.error(f"--rounds {given.rounds}: at least one")
    if not any(Path(option.partition("::")[0]).exists() for option in options):
        options = [*SUITES, *options]
    failed: dict[str, list[int]] = {}
    number = passed = result = 0
    for number in range(1, given.rounds + 1):
        seed = random.SystemRandom().getrandbits(32)
        print(f"round {number} of {given.rounds}: seed {seed}", flush=True)
        code, tests = _round(options, seed)
        passed += not code
        result = result or code
        for test in tests:
            failed.setdefault(test, []).append(seed)
        if code not in (0, TESTS_FAILED):
            break
    print(f"{passed} of {number} rounds passed")
    for test, seeds in sorted(failed.items()):
        again = shlex.quote(f"{test} --seed {seeds[0]}")
        print(f"{test} failed with seed {', '.join(map(str, seeds))}; repeat it with: make test ARGS={again}")
    return result


def _round(options: Sequence[str], seed: int) -> tuple[int, list[str]]:
    """pytest's exit code, and arguments that repeat what failed: a test each, or the whole round where none did."""
    with TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "pytest", "-q", "--numprocesses", "4", "--no-loadscope-reorder"]
        command += ["-o", f"cache_dir={cache}", *options, "--seed", str(seed)]
        code = subprocess.run(command, check=False).returncode
        noted = Path(cache, "v", "cache", "lastfailed")  # what pytest's own --last-failed reads
        tests = [shlex.quote(test) for test in json.loads(noted.read_text())] if noted.exists() else []
    return code, tests or [shlex.join(options)] * bool(code)


if __name__ == "__main__":
    sys.exit(main())
