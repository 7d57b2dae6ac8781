"""Compiles the hot modules with mypyc: the same sources, about twice as fast. Needs mypy, setuptools and a C compiler.

`python tools/compile.py` puts the compiled modules beside their sources, where Python prefers them; `--remove` takes
them away again, `--stale` only those whose sources are newer (every make target does that first, so that nobody tests
what he has not compiled). `--gain` is the line that `make run` prints. The build of a wheel calls the same function
(see `hatch_hook.py`).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "artemis_py"
MODULES: Final = (
    "histogram.py",
    "logged.py",
    "message.py",
    "paged.py",
    "records.py",
    "uploads.py",
    "selector/*.py",
    "core/*.py",
    "core/addresses/*.py",
    "core/destinations/*.py",
    "core/filling/*.py",
    "core/groups/*.py",
    "core/order/*.py",
    "core/pages/*.py",
    "core/placing/*.py",
    "core/queue/*.py",
    "core/reference/*.py",
    "core/replay/*.py",
    "core/routing/*.py",
    "core/timing/*.py",
    "stomp/*.py",
    "stomp/session/*.py",
    "stomp/wire/*.py",
    "storage/journal/story.py",
    "storage/format/codec.py",
    "storage/format/page_codec.py",
    "storage/journal/index.py",
    "storage/pages/index.py",
    "storage/replay/slices.py",
    "storage/format/segment_index.py",
    "storage/journal/segments.py",
    "storage/journal/compaction.py",
    "storage/journal/record_writer.py",
    "storage/journal/journal.py",
    "server/blocked.py",
    "server/clocks.py",
    "server/input.py",
    "server/input.py",
)
"""What runs per message and per turn. Packages' `__init__.py` stay as they are."""
_SETUP: Final = """
import sys
from mypyc.build import mypycify
from setuptools import setup
setup(name="artemis_py", packages=[], ext_modules=mypycify(sys.argv[3:], opt_level="2", debug_level="0"),
      script_args=sys.argv[1:3])
"""


def sources() -> list[Path]:
    """The modules that are compiled."""
    package = ROOT / PACKAGE
    found = {path for pattern in MODULES for path in package.glob(pattern) if path.name != "__init__.py"}
    return sorted(found)


def compile_to(target: Path) -> list[Path]:
    """Compile into ``target``, laid out like the root of the project; returns what was made.

    Raises RuntimeError with the compiler's words.
    """
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / PACKAGE, copy / PACKAGE, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        names = [str(path.relative_to(ROOT)) for path in sources()]
        command = [sys.executable, "-c", _SETUP, "build_ext", "--inplace", *names]
        run = subprocess.run(command, cwd=copy, text=True, capture_output=True, check=False)
        if run.returncode:
            said = [line for line in (run.stdout + run.stderr).splitlines() if "error" in line.lower()]
            raise RuntimeError("\n".join(said[:20]) or run.stderr[-2000:])
        made = sorted(copy.rglob("*.so"))
        for path in made:
            place = target / path.relative_to(copy)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)
        return [target / path.relative_to(copy) for path in made if "build" not in path.relative_to(copy).parts]


def compiled() -> list[Path]:
    """The compiled modules that stand beside their sources, with the library that they share."""
    return [*ROOT.glob("*__mypyc.*.so"), *(ROOT / PACKAGE).rglob("*.so")]


def is_stale() -> bool:
    """Is a source newer than what was compiled, or does something compiled have no source any more?"""
    present = [path for path in compiled() if path.parent != ROOT]
    wanted = {path.with_suffix(""): path for path in sources()}
    if not present:
        return False
    oldest_s = min(path.stat().st_mtime for path in present)
    kept = {path.with_name(path.name.split(".")[0]) for path in present}
    return kept != set(wanted) or any(path.stat().st_mtime > oldest_s for path in wanted.values())


def remove() -> None:
    """Go back to the sources."""
    for path in compiled():
        path.unlink()


def main() -> int:
    """The exit code: 0, or 1 when it does not compile."""
    parser = argparse.ArgumentParser(description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--remove", action="store_true", help="go back to the sources")
    choice.add_argument("--stale", action="store_true", help="go back to the sources if they are newer")
    choice.add_argument("--gain", action="store_true", help="say in one line what compiling would gain, if it would")
    arguments = parser.parse_args()
    if arguments.remove:
        remove()
    elif arguments.stale:
        if is_stale():
            remove()
            print("The sources are newer than what was compiled, so they run now; `make compile` compiles again.")
    elif arguments.gain:
        if not compiled() and (shutil.which("cc") or shutil.which("gcc")):
            print("The broker runs from its sources; `make compile` makes it twice as fast, once, in some minutes.")
    elif not compiled() or is_stale():
        remove()
        print(f"Compiling {len(sources())} modules, which takes some minutes …", flush=True)
        try:
            compile_to(ROOT)
        except RuntimeError as error:
            print(f"not compiled, the sources run as they are:\n{error}", file=sys.stderr)
            return 1
        print("Compiled. `make interpreted` goes back to the sources.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
