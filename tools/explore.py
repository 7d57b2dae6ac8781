"""Looks for faults that the seed of the commit does not show: runs tests that draw what they do, with new seeds.

`make explore ROUNDS=20` does so. `make explore ARGS='tests/sim -k torn'` looks at these tests alone: what is not for
this program is for pytest.
"""

from __future__ import annotations

import argparse
import random
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
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
    failed: list[int] = []
    number = result = 0
    for number in range(1, given.rounds + 1):
        seed = random.SystemRandom().getrandbits(32)
        print(f"round {number} of {given.rounds}: seed {seed}", flush=True)
        command = ["-m", "pytest", "-q", "--numprocesses", "2", "--no-loadscope-reorder", *options]
        code = subprocess.run([sys.executable, *command, "--seed", str(seed)], check=False).returncode
        if code:
            failed.append(seed)
            result = result or code
        if code not in (0, TESTS_FAILED):
            break
    print(f"{number - len(failed)} of {number} rounds passed")
    for seed in failed:
        again = shlex.quote(shlex.join([*options, "--seed", str(seed)]))
        print(f"seed {seed} failed; repeat it with: make test ARGS={again}")
    return result


if __name__ == "__main__":
    sys.exit(main())
