"""The long run: ``python -m tests.e2e.soak_kill --kills 200 --seed N``. Exit code 1 when a promise was broken.

With ``--pair`` there are two brokers on the directory, and the gaps between them are measured.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.e2e.kill_log import problems_of_log
from tests.e2e.kill_rounds import KillRun, PairKillRun


def main() -> int:
    """Runs, prints one line per run and every problem; keeps the files of a run that had problems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often the broker is killed in each run")
    parser.add_argument("--runs", type=int, default=1, help="how many runs, each with new files")
    parser.add_argument("--seed", type=int, default=None, help="of the first run; the others count on from it")
    parser.add_argument("--retention", action="store_true", help="keep closed journal files")
    parser.add_argument("--pair", action="store_true", help="two brokers: when one is killed, the other takes over")
    parser.add_argument("--backlog", type=int, default=0, help="with --pair: messages of 1 kB that nobody consumes")
    options = parser.parse_args()
    first = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    for seed in range(first, first + options.runs):
        folder = Path(tempfile.mkdtemp(prefix="kill-"))
        run = (
            PairKillRun(folder, seed, backlog=options.backlog)
            if options.pair
            else KillRun(folder, seed, retention=options.retention)
        )
        run.run(options.kills)
        if options.retention and not options.pair:
            run.ledger.problems += problems_of_log(folder, run.ledger, run.replays)
        print(run.summary(), flush=True)
        for problem in run.ledger.problems[:50]:
            print(f"  {problem}")
        if run.ledger.problems:
            print(f"  the files are in {folder}")
            return 1
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
