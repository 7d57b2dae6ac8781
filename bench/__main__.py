"""``python -m bench`` (``make bench``): measures artemis_py and every peer found here by turns, and prints the tables.

With ``--write`` it writes them into ``docs/benchmarks.md``, part by part, all with the stamp of this run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from subprocess import SubprocessError
from typing import Final

from artemis_py.errors import ArtemisError
from artemis_py.perf.registry import choose
from artemis_py.perf.scenario import Options
from bench import document
from bench.brokers import BROKERS
from bench.comparison import Comparison, measure_brokers
from bench.day import SEGMENTS, measure_day
from bench.deep_queues import measure_depths
from bench.fairness import measure_fairness
from bench.goals import BUILDS, GOALS, measure_goals
from bench.leases import measure_leases
from bench.operate import measure_operating
from bench.paged import measure_paged
from bench.part import Extent, NotMeasured, Part, Say
from bench.pipeline import measure_pipeline
from bench.replays import measure_replays
from bench.scaling import measure_scaling

COMPARISON: Final = "brokers"
SCENARIOS: Final = [
    "1", "1u", "1t", "1w", "2", "5", "6", "8", "8t", "12", "3", "3i", "4", "11", "7", "9", "10", "recovery",
]  # fmt: skip
"""What every broker is asked for: the part ``brokers``."""
PARTS: Final[Mapping[str, Callable[[Extent, Say], Part]]] = {
    COMPARISON: lambda extent, say: measure_brokers(SCENARIOS, extent, say),
    "goals": lambda extent, say: measure_goals(GOALS, extent, say),
    "builds": lambda extent, say: measure_goals(BUILDS, extent, say),
    "pipeline": measure_pipeline,
    "day": measure_day,
    "depth": measure_depths,
    "replays": measure_replays,
    "paged": measure_paged,
    "operate": measure_operating,
    "leases": measure_leases,
    "fairness": measure_fairness,
    "scaling": measure_scaling,
}
"""The sections of docs/benchmarks.md, in its order, and those of other pages."""
PAGES: Final = {"scaling": document.SCALING}
"""Where the others are."""
MINUTES: Final[Mapping[str, float]] = {
    "brokers": 14,
    "goals": 4,
    "builds": 3.5,
    "pipeline": 4.5,
    "day": 1.5,
    "depth": 2,
    "replays": 1,
    "paged": 1,
    "operate": 1,
    "leases": 0.5,
    "fairness": 0.5,
    "scaling": 3,
}
"""About how long each takes on two quiet cores, with the rounds and seconds that are the default."""
DEFAULT_BROKERS: Final = "artemis_py,activemq,coilmq,artemis,rabbitmq"
ROUNDS: Final = 2
SECONDS: Final = 2.0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="artemis_py beside other brokers, in one run")
    names = ", ".join(broker.name for broker in BROKERS)
    parser.add_argument(
        "--brokers", default=DEFAULT_BROKERS, help=f"of {names} (default %(default)s; those absent are named)"
    )
    parser.add_argument(
        "--scenario",
        default=",".join(PARTS),
        help="sections of docs/benchmarks.md, or ids of scenarios for all brokers, with commas between (default "
        "%(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="default %(default)s")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="measured time per scenario (default %(default)s)"
    )
    parser.add_argument("--messages", type=int, help="a fixed number of messages instead")
    parser.add_argument("--segments", type=int, help=f"of the log of section day (default {SEGMENTS:,})")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a scenario may take at most (default 60)")
    parser.add_argument("--quick", action="store_true", help="one round of one second: a look, not a measurement")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the tables")
    parser.add_argument("--write", action="store_true", help="write into docs/benchmarks.md, scaling.md, README.md")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a target is missed")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all of it; returns 1 when ``--check`` finds a target missed. Raises PerfError for wrong arguments."""
    args = arguments(argv)
    rounds, seconds = (1, 1.0) if args.quick else (args.rounds, args.seconds)
    options = Options(messages=args.messages, seconds=seconds, limit_s=args.limit)
    extent = Extent(options, rounds, args.brokers.split(","), args.quick, args.messages, args.segments)
    named = args.scenario.split(",")
    scenarios = [name for name in named if name not in PARTS]
    choose(scenarios)
    stamp = document.stamp()
    names = [name for name in PARTS if name in named]
    if not args.quick:
        _say(f"about {sum(MINUTES[name] for name in names):.0f} minutes: {', '.join(names)}")
    if args.write and not PAGES.keys() >= set(names):
        often = "1 round" if rounds == 1 else f"{rounds} rounds"
        document.write(document.RUN, stamp, f"{stamp}. {often}, about {seconds:g} s per scenario, medians.")
    parts: dict[str, Part] = {}
    if scenarios:
        parts["scenarios"] = measure_brokers(scenarios, extent, _say)
    for place, name in enumerate(names, 1):
        parts[name] = _measured(name, f"{place} of {len(names)}", extent)
        if args.write:
            _write(name, stamp, parts[name])
    if args.json:
        print(json.dumps({name: part.as_json() for name, part in parts.items()}, indent=2))
    else:
        print("\n\n".join(part.text() for part in parts.values()))
    return 1 if args.check and any(part.missed for part in parts.values()) else 0


def _measured(name: str, place: str, extent: Extent) -> Part:
    """A part; what fails in it does not keep the others from being measured."""
    expected = "" if extent.quick else f", about {MINUTES[name]:g} minutes"
    _say(f"part {place}: {name}{expected}")
    began_s = time.monotonic()
    try:
        part = PARTS[name](extent, _say)
    except (ArtemisError, OSError, SubprocessError) as error:
        part = NotMeasured(str(error) or type(error).__name__)
        _say(f"{name}: {part.reason}")
    _say(f"{name} took {(time.monotonic() - began_s) / 60:.1f} minutes")
    return part


def _write(name: str, stamp: str, part: Part) -> None:
    document.write(name, stamp, part.section(), PAGES.get(name))
    if isinstance(part, Comparison):
        document.write(document.SPEED, stamp, part.headlines(), document.README)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ArtemisError as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
