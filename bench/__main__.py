"""``python -m bench`` (``make bench``): measures artemis_py and every peer found here by turns, prints one table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence

from artemis_py.errors import ArtemisError
from artemis_py.perf.scenario import Options
from bench import document
from bench.brokers import BROKERS, present
from bench.comparison import text, verdict
from bench.day import DAY, SEGMENTS, Day, measure_day
from bench.deep_queues import DEPTH, DEPTHS, DeepQueues, measure_depths
from bench.driver import Measured, measure
from bench.goals import GOAL, Goals, measure_goals
from bench.operate import MESSAGES, OPERATE, QUEUES, Operating, measure_operating
from bench.pipeline import PIPELINE, Pipeline, measure_pipeline

Part = Pipeline | DeepQueues | Day | Operating | Goals
"""What has a table of its own."""
DEFAULT_BROKERS = "artemis_py,activemq,coilmq,artemis,rabbitmq"
DEFAULT_SCENARIOS = "1,1t,1w,1u,2,5,6,8,8t,12,3,3i,4,11,7,9,10,recovery,goals,pipeline,depth,day,operate"


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="artemis_py beside other brokers, in one run")
    names = ", ".join(broker.name for broker in BROKERS)
    parser.add_argument(
        "--brokers", default=DEFAULT_BROKERS, help=f"of {names} (default %(default)s; those absent are named)"
    )
    parser.add_argument(
        "--scenario",
        default=DEFAULT_SCENARIOS,
        help="ids with commas between (default %(default)s); goals is what a message may cost, beside other peers and "
        "the commit or directory that the environment names as OLD, pipeline is Spark on the broker's log, depth every "
        "type of queue, deep and not, day questions about 24 hours of log, operate what operators cost others",
    )
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--seconds", type=float, default=3.0, help="measured time per scenario (default 3)")
    parser.add_argument("--messages", type=int, help="a fixed number of messages instead")
    parser.add_argument("--segments", type=int, help=f"of the log of scenario day (default {SEGMENTS:,}, quick 1,000)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a scenario may take at most (default 60)")
    parser.add_argument("--quick", action="store_true", help="one round of one second: a look, not a measurement")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument(
        "--write",
        nargs="?",
        const=document.BROKERS,
        metavar="TABLE",
        help="write the tables into docs/benchmarks.md; that of the brokers under this name (default %(const)s)",
    )
    parser.add_argument("--check", action="store_true", help="exit code 1 when a target is missed")
    return parser.parse_args(argv)


def as_json(found: Sequence[Measured], absent: Sequence[str], parts: Mapping[str, Part]) -> str:
    """Everything measured."""
    brokers = {
        one.broker.name: {
            "version": one.version,
            "results": [outcome.as_json() for outcome in one.outcomes.values()],
        }
        for one in found
    }
    verdicts = [verdict(found, scenario) for scenario in _scenarios(found)]
    judged = {one.scenario: {"ratio": one.ratio, "met": one.met} for one in verdicts}
    told = {"absent": list(absent), "brokers": brokers, "verdicts": judged}
    return json.dumps({**told, **{name: part.as_json() for name, part in parts.items()}}, indent=2)


def _scenarios(found: Sequence[Measured]) -> list[str]:
    return [*found[0].outcomes] if found else []


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all of it; returns 1 when ``--check`` finds a target missed. Raises PerfError for wrong arguments."""
    args = arguments(argv)
    rounds, seconds = (1, 1.0) if args.quick else (args.rounds, args.seconds)
    options = Options(messages=args.messages, seconds=seconds, limit_s=args.limit)
    names = args.scenario.split(",")
    scenarios = [name for name in names if name not in (GOAL, PIPELINE, DEPTH, DAY, OPERATE)]
    found: list[Measured] = []
    absent: list[str] = []
    if scenarios:
        brokers, absent = present(args.brokers.split(","))
        for line in absent:
            _say(f"not measured: {line}")
        found = measure(brokers, scenarios, options, rounds, _say)
    parts: dict[str, Part] = {}
    if GOAL in names:
        parts[GOAL] = measure_goals(options, rounds, _say)
    if PIPELINE in names:
        messages = args.messages or (100_000 if args.quick else 1_000_000)
        parts[PIPELINE] = measure_pipeline(messages, rounds, seconds, _say)
    if DEPTH in names:
        parts[DEPTH] = measure_depths(DEPTHS[:2] if args.quick else DEPTHS, rounds, _say)
    if DAY in names:
        parts[DAY] = measure_day(args.segments or (1_000 if args.quick else SEGMENTS), _say)
    if OPERATE in names:
        queues, depth = (1_000, 100_000) if args.quick else (QUEUES, MESSAGES)
        parts[OPERATE] = measure_operating(queues, args.messages or depth, seconds, _say)
    if args.json:
        print(as_json(found, absent, parts))
    else:
        print("\n\n".join([*([text(found)] if found else []), *(part.text() for part in parts.values())]))
    if args.write:
        if found:
            document.write(args.write, found, absent, options, rounds)
        for name, part in parts.items():
            document.write_part(name, part.section(), rounds)
    missed = [scenario for scenario in _scenarios(found) if verdict(found, scenario).met is False]
    missed += [name for part in parts.values() for name in part.missed]
    return 1 if args.check and missed else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ArtemisError as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
