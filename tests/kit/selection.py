"""Which tests a run leaves out: those whose turn it is not, two thirds of very many that are much alike, two thirds of
the tests of a part that did not change, on compiled modules two thirds of the files of tests end to end, and
with ``--fast`` all that take long or need more than the broker's own dependencies. The summary names them. Continuous
integration has all but the first, on the sources.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from artemis_py.version import IS_COMPILED

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ROOT / "tests"


@dataclass(frozen=True, slots=True)
class Part:
    """Tests that take long, and the folders and files that they prove: where one of these changed, a run has all of
    them, else a third. ``tests`` are beginnings of their ids.
    """

    name: str
    tests: tuple[str, ...]
    proves: tuple[str, ...]
    is_by_file: bool = False
    """A third of the files: what the tests of one share, such as what Spark compiles, costs more than most of them."""


PARTS: Final = (
    Part("Spark", ("tests/spark/",), ("artemis_py/spark", "artemis_py/storage/format"), is_by_file=True),
    Part(
        "console",
        ("tests/e2e/console/",),
        ("artemis_py/console", "artemis_py/management", "artemis_py/server/http", "tests/kit/browser.py"),
    ),
    Part("operations and commands", ("tests/e2e/commands/", "tests/e2e/management/"), ("artemis_py", "tests/kit")),
    Part("monitoring", ("tests/monitoring/",), ("artemis_py", "monitoring", "tests/kit")),
    Part(
        "worlds and transcripts",
        (
            "tests/fuzz/",
            "tests/model/",
            "tests/sim/",
            "tests/wire/test_transcripts.py",
            "tests/wire/test_turn_budget.py",
        ),
        (
            "artemis_py/config",
            "artemis_py/core",
            "artemis_py/selector",
            "artemis_py/server",
            "artemis_py/stomp",
            "artemis_py/storage",
            "artemis_py/message.py",
            "artemis_py/paged_messages.py",
            "artemis_py/pending_output.py",
            "artemis_py/record_log.py",
            "artemis_py/replay_log.py",
            "artemis_py/uploads.py",
            "tests/kit",
        ),
    ),
    Part(
        "other languages",
        ("tests/e2e/test_client_examples.py", "tests/e2e/test_examples_to_copy.py"),
        ("artemis_py/testing", "docs/clients.md", "docs/testing.md", "integrations/examples", "tests/clients"),
    ),
    Part(
        "compiling",
        ("tests/unit/test_compile.py",),
        ("pyproject.toml", "tools/compile.py", "tests/unit/test_compile.py"),
    ),
)
END_TO_END: Final = "tests/e2e/"
"""What mostly waits for other processes."""
ALONE: Final = ("tests/e2e/test_standby.py",)
"""Files that are the only ones to run a compiled module: a broker that waits for another one."""
MANY: Final = 6
"""Of fewer cases of a test, or files, none is left out."""
BASES: Final = ("@{upstream}", "origin/HEAD", "main")
"""What a branch has left: the first of these that git knows."""
FAST: Final = (
    "tests/queues",
    "tests/tidy",
    "tests/unit/config",
    "tests/unit/core",
    "tests/unit/stomp",
    "tests/unit/test_matching.py",
    "tests/unit/test_selector.py",
    "tests/unit/test_wildcards.py",
    "tests/wire/test_transcripts.py::test_whole[whole turns",
)
"""What somebody runs who changed one line; on two cores, in less than a minute. Folders, files, beginnings of ids."""
LONG: Final = (
    "tests/queues/test_a_disk.py",
    "tests/queues/test_combinations.py",
    "tests/queues/test_rows.py",
    "tests/unit/core/test_fan_out.py",
    "tests/unit/core/test_fifo_by_lsn.py",
    "tests/unit/core/test_many.py",
    "tests/unit/core/test_scan_cursors.py",
    "tests/unit/core/test_turns_end.py",
    "tests/unit/stomp/test_parser_cost.py",
)
"""Files of these folders that take seconds."""


def is_in_the_third(nodeid: str, seed: int) -> bool:
    """Is this one of the third that the seed draws? Each commit draws another one."""
    return zlib.crc32(f"{seed}:{nodeid}".encode()) % 3 == 0


def third_of(files: Iterable[str], seed: int) -> set[str]:
    """One of each three neighbours by name, which are about the same thing; the seed of each commit says which. Whole
    files, because what the tests of one share, such as a broker or what Spark compiles, costs more than most of them.
    """
    turn = seed // 256 % 3  # not of the digits by which the tests that take turns are chosen
    return set(sorted({*files})[turn::3])


def take_turns(items: Iterable[pytest.Item], seed: int) -> None:
    """Of the tests that take turns under one name, each run has one, by its seed; the others say so."""
    members: dict[str, list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("takes_turns")
        if mark is not None:
            members.setdefault(mark.args[0], []).append(item)
    for name, those in members.items():
        chosen = sorted(those, key=lambda item: item.nodeid)[seed % len(those)]
        for item in those:
            if item is not chosen:
                leave_out(item, f"one of {name} in each run, all of them in make soak")


def take_thirds(items: Iterable[pytest.Item], seed: int) -> None:
    """Of very many that are much alike a run has a third, by its seed; of those of a test that are few, all. Continuous
    integration has all on the sources, and a third on compiled modules: what compiling breaks shows in that.
    """
    members: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("thirds") is not None:
            members.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for those in members.values():
        for item in those if len(those) >= MANY else ():
            if not is_in_the_third(item.nodeid, seed):
                leave_out(item, "a third in each run (all: CI=1, on the sources)")


def take_third_of_files(items: Iterable[pytest.Item], seed: int) -> None:
    """Of the files of tests end to end a run on compiled modules has a third, by its seed; of a few, all. Each of them
    starts a broker, uses it and ends it, and on the sources all of them run: what compiling breaks shows in a third.
    """
    members = [item for item in items if item.nodeid.startswith(END_TO_END) and not item.nodeid.startswith(ALONE)]
    files = {item.nodeid.partition("::")[0] for item in members}
    third = third_of(files, seed) if len(files) >= MANY else files
    for item in members:
        if item.nodeid.partition("::")[0] not in third:
            leave_out(item, "a third of the files in each run on compiled modules (all: on the sources)")


def is_of_ci() -> bool:
    """Is this run one of continuous integration?"""
    return bool(os.environ.get("CI"))


def share_of(count: int) -> int:
    """How many of so many random worlds this run has: all in continuous integration, elsewhere half. Compiled modules
    have the same logic: what compiling breaks shows in a quarter.
    """
    return count // 4 if IS_COMPILED else count if is_of_ci() else count // 2


def leave_out(item: pytest.Item, reason: str) -> None:
    """Skips a test. The summary has one line for each file and reason."""
    item.add_marker(pytest.mark.skip(reason=reason))
    item.stash[LEFT_OUT] = True


LEFT_OUT: Final = pytest.StashKey[bool]()
"""Has this run left it out?"""


def leave_out_of_parts(items: Iterable[pytest.Item], whole: Collection[str], seed: int) -> None:
    """Leaves out two thirds of the tests of each part that this run does not have as a ``whole``."""
    for part in PARTS:
        if part.name in whole:
            continue
        members = [item for item in items if item.nodeid.startswith(part.tests)]
        third = third_of((item.nodeid.partition("::")[0] for item in members), seed)
        for item in members:
            if not (item.nodeid.partition("::")[0] in third if part.is_by_file else is_in_the_third(item.nodeid, seed)):
                named = " ".join(test.removesuffix("/") for test in part.tests)
                leave_out(item, f"a third in each run where nothing of this changed (all: make test ARGS='{named}')")


def whole_parts(config: pytest.Config) -> list[str]:
    """The names of the parts of which this run has all: of continuous integration all, else those that somebody named,
    and those that changed.
    """
    if is_of_ci():
        return [part.name for part in PARTS]
    named = {Path(argument.split("::")[0]).resolve() for argument in config.args} - {ROOT, TESTS}
    found: list[str] = []
    for part in PARTS:
        pairs = [(ROOT / test, one) for test in part.tests for one in named]
        is_named = any(one.is_relative_to(path) or path.is_relative_to(one) for path, one in pairs)
        if is_named or has_changed(ROOT, (*part.proves, *part.tests)):
            found.append(part.name)
    return found


def has_changed(root: Path, paths: Iterable[str]) -> bool:
    """Has any of these paths changed since the branch left what is published, in the last commit, or since? Where git
    cannot tell, it has.
    """

    def git(*arguments: str) -> str:
        run = subprocess.run(("git", *arguments), cwd=root, capture_output=True, text=True, check=True)
        return run.stdout.strip()

    try:
        since = ["HEAD^"]
        for name in BASES:
            with suppress(subprocess.CalledProcessError):
                since.append(git("merge-base", "HEAD", name))
                break
        else:
            since.append("HEAD")
        differing = [git("diff", "--name-only", commit, "--", *paths) for commit in since]
        return any((*differing, git("ls-files", "--others", "--exclude-standard", "--", *paths)))
    except (OSError, subprocess.CalledProcessError):
        return True


def is_fast(path: Path) -> bool:
    """Does a fast run have this file, or something of this folder?"""
    name = path.relative_to(ROOT).as_posix()
    files = (fast.partition("::")[0] for fast in FAST)
    return name not in LONG and any(
        f"{name}/".startswith(f"{fast}/") or f"{fast}/".startswith(f"{name}/") for fast in files
    )


def leave_out_the_long(items: list[pytest.Item], config: pytest.Config) -> None:
    """Of the files of a fast run, leaves out what is not fast."""
    fast = [item for item in items if item.nodeid.startswith(FAST) and "byte by byte" not in item.nodeid]
    config.hook.pytest_deselected(items=[item for item in items if item not in {*fast}])
    items[:] = fast


def not_fast() -> list[str]:
    """What a fast run leaves out: folders, and how many files of those that it has."""
    folders: set[str] = set()
    files: Counter[str] = Counter()
    for file in TESTS.rglob("test_*.py"):
        if not is_fast(file):
            folder = file.parent
            if is_fast(folder):
                files[folder.relative_to(ROOT).as_posix()] += 1
            else:
                while not is_fast(folder.parent):
                    folder = folder.parent
                folders.add(folder.relative_to(ROOT).as_posix())
    return sorted(folders) + [f"{count} files of {folder}" for folder, count in sorted(files.items())]
