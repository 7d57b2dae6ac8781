"""``python -m tests.sim --seed N [--worlds K]``: run worlds one after the other; a seed repeats its world."""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback

from tests.kit.crash.world import CrashWorld


def main() -> int:
    """0 when every world held, else 1; each that did not is printed with its seed."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32), help="of the first world")
    parser.add_argument("--worlds", type=int, default=1, help="how many worlds, with consecutive seeds")
    parser.add_argument("--lives", type=int, default=4, help="how often each world crashes")
    parser.add_argument("--steps", type=int, default=60, help="at most this many steps in each life")
    parser.add_argument("--large", action="store_true", help="longer bodies go to files of their own")
    arguments = parser.parse_args()
    started_s = time.monotonic()
    failed = []
    for seed in range(arguments.seed, arguments.seed + arguments.worlds):
        try:
            report = CrashWorld(seed, lives=arguments.lives, steps=arguments.steps, large=arguments.large).run()
        except Exception:
            failed.append(seed)
            print(f"seed {seed}:\n{traceback.format_exc()}", file=sys.stderr)
        else:
            if arguments.worlds == 1:
                print(report)
    took_s = time.monotonic() - started_s
    print(f"{arguments.worlds} worlds from seed {arguments.seed}, {len(failed)} failed, {took_s:.1f} s: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
