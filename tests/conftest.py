"""What all tests share: one seed per run, printed at the start and with each failure, and the Hypothesis profiles."""

from __future__ import annotations

import gc
import importlib
import os
import random
import resource
import shutil
import subprocess
import zlib
from collections.abc import Collection, Generator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings

from artemis_py.version import IS_COMPILED, VERSION
from tests.kit import selection
from tests.kit.packages import Absent, taken_apart

ROOT = Path(__file__).resolve().parents[1]
SEED_BITS = 32
NEW = "new"
DESCRIPTORS = 8192
WHOLE = pytest.StashKey[Collection[str]]()
_SPARK = "tests/spark/"
_LONG = ("tests/model/", "tests/sim/", "tests/wire/", "tests/queues/", "tests/unit/holdings/")
"""What computes for long in one file."""
_WAITING_UNTIL = 0.8
"""What waits is spread over so much of a run: files that are short and compute come last, and all processes end at
about the same time.
"""

settings.register_profile("default", print_blob=True, deadline=None)
settings.register_profile("ci", parent=settings.get_profile("default"), suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("compiled", parent=settings.get_profile("ci"), max_examples=25)
settings.register_profile("soak", parent=settings.get_profile("ci"), max_examples=10_000, stateful_step_count=200)
settings.load_profile("compiled" if IS_COMPILED else "ci" if selection.is_of_ci() else "default")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--seed N`` repeats a run: fixtures and Hypothesis draw from it. Without it all runs of a commit are one."""
    parser.addoption("--spark-cluster", action="store_true", help="tests of Spark on a master and two workers")
    parser.addoption("--fast", action="store_true", help="what takes a minute and needs no package but test-fast's")
    parser.addoption("--chaos-minutes", type=float, default=10.0, help="how long tests/spark/test_chaos.py disturbs")
    parser.addoption("--churn-minutes", type=float, help="how long clients come and go in tests/e2e/test_churn.py")
    parser.addoption("--fuzz-inputs", type=int, metavar="N", help="inputs of each long run in tests/fuzz (a million)")
    parser.addoption("--seed", metavar="N", help=f"repeat the run that printed this seed; {NEW!r} draws a new one")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Chooses the seed of this run before Hypothesis reads its own option. The processes that share a run have one."""
    os.environ.pop("PYTHONUNBUFFERED", None)  # with it, programs that forget to flush would be found by users alone
    os.environ.setdefault("ARTEMIS_PY_LOOP", "asyncio")  # as most users run it; with uvloop: ARTEMIS_PY_LOOP=uvloop
    _allow_descriptors()
    given = config.option.seed
    if hasattr(config, "workerinput"):
        config.option.seed = config.workerinput["seed"]
    elif given is None:
        config.option.seed = seed_of_commit(ROOT)
    elif given == NEW:
        config.option.seed = random.SystemRandom().getrandbits(SEED_BITS)
    else:
        try:
            config.option.seed = int(given)
        except ValueError:
            raise pytest.UsageError(f"--seed {given}: give a number, or {NEW!r}") from None
    inherited = getattr(config, "workerinput", {}).get("whole")
    config.stash[WHOLE] = selection.whole_parts(config) if inherited is None else inherited
    if getattr(config.option, "hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(config.option.seed)


def _allow_descriptors() -> None:
    """Many systems give a program few descriptors and let it take more: so does the broker."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < DESCRIPTORS:
        wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def seed_of_commit(root: Path) -> int:
    """The beginning of the commit's id: every commit tries other numbers, and one that passed passes again, on every
    machine. Where there is no git, or this is no checkout, it comes from the version.
    """
    command = ["git", "rev-parse", "--show-prefix", "HEAD"]
    try:
        found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return zlib.crc32(VERSION.encode())
    prefix, _, commit = found.stdout.partition("\n")
    if prefix or found.returncode:  # a prefix: the checkout is another one, around this folder
        return zlib.crc32(VERSION.encode())
    return int(commit[: SEED_BITS // 4], 16)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Gives a process of this run its seed, and the parts that run as a whole."""
    node.workerinput["seed"] = node.config.option.seed
    node.workerinput["whole"] = node.config.stash[WHOLE]
    has_all = node.config.args_source is pytest.Config.ArgsSource.TESTPATHS and not node.config.option.fast
    node.workerinput["has_all"] = has_all


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each process of a run of all tests imports another share of their files first, and then all in order. In a fresh
    clone pytest rewrites them, which takes longer than to collect them; so each file is rewritten once, not by all.
    """
    process = getattr(session.config, "workerinput", {})
    if not process.get("has_all", False):
        return
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    for file in files[int(process["workerid"].removeprefix("gw")) * len(files) // process["workercount"] :]:
        with suppress(Exception, pytest.skip.Exception):  # whoever collects it says so
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A fast run does not even import the others."""
    return True if config.option.fast and not selection.is_fast(collection_path) else None


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Shows the seed at the top of every run, and whether the hot modules are compiled."""
    kind = "compiled" if IS_COMPILED else "interpreted"
    return [f"seed: {config.option.seed} (repeat with --seed {config.option.seed})", f"hot modules: {kind}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what this run has not, says why of each test that cannot run on compiled modules, and puts the others
    in order.
    """
    if config.option.fast:
        selection.leave_out_the_long(items, config)
    if "slow" not in config.option.markexpr:
        selection.take_turns(items, config.option.seed)
        if IS_COMPILED or not selection.is_of_ci():
            selection.take_thirds(items, config.option.seed)
        if IS_COMPILED:
            selection.take_third_of_files(items, config.option.seed)
        selection.leave_out_of_parts(items, config.stash[WHOLE], config.option.seed)
    places = _places([item.nodeid for item in items])
    items.sort(key=lambda item: places[_file_of(item.nodeid)])
    if IS_COMPILED:
        for item in items:
            if item.get_closest_marker("interpreted") is not None:
                item.add_marker(pytest.mark.skip(reason="replaces a part of what is compiled; runs on the sources"))


def pytest_collection_finish() -> None:
    """All tests and modules that are here now stay to the end: the collector need not walk them each time."""
    gc.collect()
    gc.freeze()


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _scope_of(nodeid: str, sparks: int) -> str:
    """What one process runs as a whole: tests of one Spark, of which there are so many, or a file."""
    file = _file_of(nodeid)
    return f"Spark {zlib.crc32(file.encode()) % sparks}" if file.startswith(_SPARK) else file


def _places(nodeids: Iterable[str]) -> dict[str, float]:
    """When each file begins, from 0 to 1. Spark's begin first: one process runs them all, one after the other. Files
    that wait are spread among files that compute, so that processors are in use from the beginning to the end.
    """
    groups: dict[str, list[str]] = {"Spark": [], "waiting": [], "long": [], "short": []}
    for file in dict.fromkeys(map(_file_of, nodeids)):
        group = "waiting" if file.startswith(selection.END_TO_END) else "long" if file.startswith(_LONG) else "short"
        groups["Spark" if file.startswith(_SPARK) else group].append(file)
    spread = {"Spark": 0.0, "waiting": _WAITING_UNTIL, "long": _WAITING_UNTIL, "short": 1.0}
    return {
        file: spread[name] * (number + 0.5) / len(files)
        for name, files in groups.items()
        for number, file in enumerate(files)
    }


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Shares tests out among processes. One Spark is enough for a third of its tests; for all of them two, as others
    would wait for the end of one.
    """
    from xdist.scheduler.loadscope import LoadScopeScheduling

    sparks = 2 if "Spark" in config.stash[WHOLE] else 1
    scheduling: Any = LoadScopeScheduling(config, log)
    scheduling._split_scope = lambda nodeid: _scope_of(nodeid, sparks)
    return scheduling


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Shows the seed again below the failures, where people look, and what a fast run left out."""
    if config.option.fast:
        terminalreporter.write_line(f"left out: {', '.join(selection.not_fast())} (all: make test)")
    terminalreporter.write_line(f"seed: {config.option.seed}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the seed to the report of a failed test. Those left out of a file are one line of the summary."""
    report = yield
    if report.skipped and item.stash.get(selection.LEFT_OUT, False) and isinstance(report.longrepr, tuple):
        report.longrepr = (report.longrepr[0], cast(int, None), report.longrepr[2])  # no line
    if report.failed:
        report.sections.append(("seed", f"--seed {item.config.option.seed}"))
    return report


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this run."""
    value: int = request.config.option.seed
    return value


@pytest.fixture
def rng(seed: int, request: pytest.FixtureRequest) -> random.Random:
    """A random generator of the test's own: the same seed gives it the same numbers in any order of tests."""
    return random.Random(f"{seed}:{request.node.nodeid}")


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """An address that no other test uses."""
    return "for." + "".join(letter if letter.isalnum() else "." for letter in request.node.name)


def _tool_or_skip(name: str) -> str:
    try:
        path = shutil.which(name) or taken_apart("prometheus") / "usr" / "bin" / name
    except Absent as absent:
        pytest.skip(f"no {name}: {absent}")
    if not Path(path).exists():
        pytest.skip(f"no {name} in the package of Prometheus")
    return str(path)


@pytest.fixture(scope="session")
def promtool() -> str:
    """The path of promtool; skips without one."""
    return _tool_or_skip("promtool")


@pytest.fixture(scope="session")
def prometheus() -> str:
    """The path of a Prometheus server; skips without one."""
    return _tool_or_skip("prometheus")
