"""Compiles what runs per turn and per message with mypyc: the same sources, twice as fast.

`python tools/compile.py` puts the compiled modules beside their sources, where Python prefers them; `--remove` takes
them away again, `--stale` only if they were made of other sources than those that are here now (every make target does
that first, so that nobody tests what he has not compiled). `--run COMMAND …` starts a broker for `make run`. The build
of a wheel calls `compile_to` (see `hatch_hook.py`).

What makes it quick: mypyc translates all modules at once, into one C file for each. As many C compilers run as there
are processors. What they make is kept in `.cache/compile`, under a digest of all that it was made of, and is never made
again. Two habits of mypyc would make every C file change with every module:

- Literals have numbers in one array of all modules, and a new literal moves those behind it. So each C file gets an
  array of its own, which is filled once, when the library is loaded. Labels and variables have such numbers, too.
- Each C file includes the declarations of all modules. So each gets those that it mentions, and those that these
  mention. The compiler reads nothing else of ours, and therefore the text alone says whether an object is still right.

Where mypyc's C has another form than is expected here, it is compiled as it is: slower, with the same result.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "artemis_py"
MODULES: Final = (
    "histogram.py",
    "logged.py",
    "message.py",
    "outbound.py",
    "paged.py",
    "records.py",
    "uploads.py",
    "core/**/*.py",
    "selector/**/*.py",
    "server/*.py",
    "server/websocket/*.py",
    "stomp/**/*.py",
    "storage/**/*.py",
)
"""What runs per message and per turn, and what stands beside it. Packages' `__init__.py` stay as they are."""
NOT_COMPILED: Final = {
    "server/own_log.py": "mypyc does not find an attribute of a base that is not compiled",
    "server/websocket/rules.py": "the library binds a function that it is given, and only Python's own can be",
    "storage/recovery/repair.py": "mypyc has no * within a tuple that is returned",
}
"""The exceptions, with their reasons. They run at a start, or for operators. One without a file is an error."""
NEEDED: Final = ("mypy>=2,<3", "setuptools>=75", "mypy_extensions>=1,<2")
"""What it takes, besides a C compiler and Python's headers."""
CACHE: Final = ROOT / ".cache" / "compile"
READY: Final = CACHE / "ready"
"""The compiled modules that were made last, laid out like the root of the project, with the digest of their sources."""
PLACED: Final = CACHE / "placed"
"""The digest of the sources of those that stand beside the sources."""
FAILED: Final = CACHE / "failed"
"""The digest of the sources that could not be compiled."""
LOG: Final = CACHE / "log"
TOOLS: Final = CACHE / f"tools-{sysconfig.get_config_var('SOABI')}"
"""Where mypy is, if the environment has none."""
_KEPT_OBJECTS: Final = 3_000
"""Two for each module, and as many again for each of some changes of everything."""
_SUFFIX: Final = str(sysconfig.get_config_var("EXT_SUFFIX"))
_OPTIONS: Final = ("--config-file=", "--follow-imports=silent", "--no-site-packages", "--ignore-missing-imports")
"""`make check` examines types. Here what else happens to be installed must make no difference."""
_TRANSLATE: Final = """
import json, os, sys
from mypy.version import __version__
from mypyc.build import ccompiler, mypycify, sysconfig
made = mypycify(sys.argv[3:], opt_level="2", debug_level="0", multi_file=True, group_name=sys.argv[2],
                target_dir=sys.argv[1])
compiler = ccompiler.new_compiler()
sysconfig.customize_compiler(compiler)
extensions = [[one.name, one.sources, one.include_dirs, one.extra_compile_args] for one in made]
with open(sys.argv[1] + "/plan", "w") as plan:
    json.dump([__version__, compiler.compiler_so, compiler.linker_so, extensions], plan)
os._exit(0)  # to free all that was translated takes as long as to translate it
"""


# ---- which modules, and were the compiled ones made of these sources? ------------------------------------------------


def sources(root: Path = ROOT) -> list[Path]:
    """The modules that are compiled. Raises RuntimeError for an exception that is not there."""
    package = root / PACKAGE
    found = {path for pattern in MODULES for path in package.glob(pattern) if path.name != "__init__.py"}
    excepted = {package / name for name in NOT_COMPILED}
    if excepted - found:
        raise RuntimeError(f"NOT_COMPILED names no module: {', '.join(map(str, sorted(excepted - found)))}")
    return sorted(found - excepted)


def digest(root: Path = ROOT) -> str:
    """Of all that compiled modules are made of: types and constants of other modules are in them, too."""
    whole = hashlib.sha256(sys.version.encode() + Path(__file__).read_bytes())
    for path in sorted((root / PACKAGE).rglob("*.py")):
        whole.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return whole.hexdigest()


def compiled() -> list[Path]:
    """The compiled modules that stand beside their sources, with the library that they share."""
    return [*ROOT.glob("*__mypyc.*.so"), *(ROOT / PACKAGE).rglob("*.so")]


def is_stale() -> bool:
    """Were the compiled modules made of other sources than those that are here?"""
    return bool(compiled()) and _text(PLACED) != digest()


def remove() -> None:
    """Go back to the sources."""
    PLACED.unlink(missing_ok=True)
    for path in compiled():
        path.unlink()


def can_compile() -> bool:
    """Are there a C compiler and the headers of this Python?"""
    compiler = os.environ.get("CC", "").partition(" ")[0] or "cc"
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    return (shutil.which(compiler) or shutil.which("gcc")) is not None and headers.exists()


def _has_mypy() -> bool:
    """Has the environment of this process what it takes?"""
    return find_spec("mypyc") is not None and find_spec("setuptools") is not None


def _text(path: Path) -> str:
    """What is in a small file; nothing if there is none."""
    return path.read_text() if path.is_file() else ""


# ---- from mypyc's C files to such as do not depend on each other -----------------------------------------------------


class Declarations:
    """What the C files of a translation tell each other in headers, by name.

    Raises ValueError if the headers have something else, too.
    """

    _ONE: Final = re.compile(
        r"^#ifndef MYPYC_DECLARED_\w+\n.*?^\} (?P<tuple>\w+);\n#endif *\n"
        r"|^typedef struct \{\n.*?^\} (?P<struct>\w+);\n"
        r"|^(?:extern )?\w[^\n{}(]*?(?P<name>\w+)(?:\[\w*\])*(?:\([^\n]*\))?;\n",
        re.MULTILINE | re.DOTALL,
    )
    _INCLUDE: Final = re.compile(r'^#include (?:<\w+\.h>|"(?!__native_)\w+\.h")\n', re.MULTILINE)
    _FRAME: Final = re.compile(r"^#(?:ifndef MYPYC_\w+_H|define MYPYC_\w+_H|endif|include [^\n]+) *$", re.MULTILINE)

    def __init__(self, headers: str) -> None:
        self.includes = "".join(dict.fromkeys(self._INCLUDE.findall(headers)))
        self._by_name: dict[str, tuple[str, set[str]]] = {}
        for one in self._ONE.finditer(headers):
            self._by_name[one["tuple"] or one["struct"] or one["name"]] = (one[0], _words(one[0]))
        if left := self._FRAME.sub("", self._ONE.sub("", headers)).strip():
            raise ValueError(f"a header has an unexpected part: {left[:100]}")

    def needed_by(self, text: str) -> str:
        """Those that a text mentions, each behind those that it mentions; otherwise in the order of their names."""
        found: dict[str, str] = {}
        begun: set[str] = set()

        def visit(words: set[str]) -> None:
            for name in sorted(self._by_name.keys() & words - begun):
                begun.add(name)
                visit(self._by_name[name][1])
                found[name] = self._by_name[name][0]

        visit(_words(text))
        return "".join(found.values())


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))


_HEADERS: Final = re.compile(r'\A(?:#include "__native_\w+\.h"\n)+')
_LITERAL: Final = re.compile(r"\bCPyStatics\[(\d+)\]")
_LOCAL: Final = re.compile(r"\b(__LL|__tmp)(\d+)\b")
_FILLED: Final = re.compile(r"^ *if \(CPyStatics_Initialize\([^{;]*\) < 0\) \{\n[^{}]*\}\n", re.MULTILINE)


def independent(texts: dict[str, str], headers: str, shared: str) -> dict[str, str]:
    """C files, by name, of which each changes only with what it uses.

    ``texts`` are what mypyc made, by name, with ``headers`` for all of them; ``shared`` names the one that makes the
    literals. Raises ValueError if they have not the expected form.
    """
    declarations = Declarations(headers)
    bodies: dict[str, str] = {}
    arrays: dict[str, list[str]] = {}
    for name, text in texts.items():
        body, found = _HEADERS.subn("", text)
        if not found:
            raise ValueError(f"{name} does not begin with the headers")
        locals_ = {one: f"{one[0]}{place}" for place, one in enumerate(dict.fromkeys(_LOCAL.findall(body)))}
        body = _LOCAL.sub(lambda one: locals_[one.groups()], body)  # noqa: B023 (called at once)
        if name != shared:
            array = "literals_of_" + re.sub(r"\W", "_", name)
            numbers = list(dict.fromkeys(_LITERAL.findall(body)))
            places = {number: f"{array}[{place}]" for place, number in enumerate(numbers)}
            body = _LITERAL.sub(lambda one: places[one[1]], body)  # noqa: B023 (called at once)
            if "CPyStatics" in body:
                raise ValueError(f"{name} has literals without a number")
            if numbers:
                arrays[array] = numbers
                body = f"extern PyObject *{array}[];\n{body}"
        bodies[name] = body
    filling = "".join(
        f"    static const int of_{array}[] = {{{', '.join(numbers)}}};\n"
        f"    for (int i = 0; i < {len(numbers)}; i++) {array}[i] = CPyStatics[of_{array}[i]];\n"
        for array, numbers in arrays.items()
    )
    filled, found = _FILLED.subn(lambda one: one[0] + filling, bodies[shared])
    if found != 1:
        raise ValueError(f"{shared} makes literals in an unexpected place")
    bodies[shared] = "".join(f"PyObject *{name}[{len(numbers)}];\n" for name, numbers in arrays.items()) + filled
    # All of this becomes one library, so nothing in it has to be looked up by name when it is called.
    head = f"{declarations.includes}#pragma GCC visibility push(hidden)\n"
    return {name: head + declarations.needed_by(body) + body for name, body in bodies.items()}


def as_they_are(texts: dict[str, str], headers: str) -> dict[str, str]:
    """The same C files, with all declarations in each."""
    own = re.sub(r'^#include "__native_\w+\.h"\n', "", headers, flags=re.MULTILINE)
    return {name: own + _HEADERS.sub("", text) for name, text in texts.items()}


# ---- from C files to modules -----------------------------------------------------------------------------------------


class Objects:
    """What C compilers made, each under a digest of what it read and of how it was called."""

    def __init__(self, folder: Path, include: list[str], known: str) -> None:
        """``include`` are the folders of headers, whose contents must be ``known``."""
        self.made: list[str] = []
        """The names of those that were not there."""
        self._folder = folder
        self._include = [f"-I{path}" for path in include]
        self._known = known
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, name: str, text: str, command: list[str]) -> Path:
        """The object made of a C file. Raises RuntimeError with the compiler's words."""
        key = hashlib.sha256("\0".join([self._known, *command, text]).encode()).hexdigest()
        path = self._folder / f"{key}.o"
        if path.exists():
            os.utime(path)
            return path
        with TemporaryDirectory(dir=self._folder) as folder:
            source = Path(folder) / f"{name}.c"
            source.write_text(text)
            _call([*command, *self._include, source.name, "-o", "made.o"], folder)
            (Path(folder) / "made.o").replace(path)
        self.made.append(name)
        return path

    def get_all(self, jobs: Sequence[tuple[str, str, list[str]]]) -> list[Path]:
        """The objects of several, each like one of `get`. The longest begins first, so that none is left over alone."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            begun = {job[0]: pool.submit(self.get, *job) for job in sorted(jobs, key=lambda job: -len(job[1]))}
            try:
                ended, _ = wait(begun.values(), return_when=FIRST_EXCEPTION)
                for one in ended:
                    one.result()  # raises what the compiler says: those behind it are given up, and say nothing
            finally:
                pool.shutdown(cancel_futures=True)
            return [begun[name].result() for name, *_ in jobs]

    def forget_old(self) -> None:
        """Keep what was used last."""
        for path in sorted(self._folder.glob("*.o"), key=lambda one: one.stat().st_mtime)[:-_KEPT_OBJECTS]:
            path.unlink(missing_ok=True)


def build(root: Path, names: Sequence[str], library: str, target: Path, cache: Path) -> list[str]:
    """Compile modules, given by their paths below ``root``, into ``target``, laid out like ``root``.

    ``library`` begins the name of what they share. Returns what was not in the cache. Raises RuntimeError with the
    words of mypyc or of the compiler.
    """
    with TemporaryDirectory() as scratch:
        _call([sys.executable, "-c", _TRANSLATE, scratch, library, *_OPTIONS, *names], root)
        version, compiler, linker, extensions = json.loads(Path(scratch, "plan").read_text())
        (library_name, paths, folders, flags), *modules = extensions
        runtime = [folder for folder in folders if folder != scratch]
        known = [sys.version, version, _call([compiler[0], "--version"], scratch)]
        known += [path.read_text() for folder in runtime for path in sorted(Path(folder).rglob("*.[ch]"))]
        objects = Objects(cache, [*runtime, sysconfig.get_path("include")], "\0".join(known))
        texts = {path.stem: path.read_text() for path in map(Path, paths)}
        ours = {name: texts.pop(name) for name in list(texts) if name.startswith("__native_")}
        headers = "".join(Path(scratch, f"__native_{part}{library}.h").read_text() for part in ("", "internal_"))
        to_object = [*compiler, *flags, "-c"]
        to_module = [*linker, *compiler[1:], *flags, "-O0"]
        # What stands beside a source only asks the library for its contents.
        shims = objects.get_all([(name, Path(files[0]).read_text(), to_module) for name, files, *_ in modules])
        for (name, *_), path in zip(modules, shims, strict=True):
            place = target / (name.replace(".", "/") + _SUFFIX)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        try:
            ours = independent(ours, headers, f"__native_{library}")
        except ValueError as error:
            print(f"this mypyc needs more time than the one that is expected: {error}", file=sys.stderr)
            ours = as_they_are(ours, headers)
        linked = objects.get_all([(name, text, to_object) for name, text in {**texts, **ours}.items()])
        _call([*linker, *linked, "-o", target / (library_name + _SUFFIX)], scratch)
        objects.forget_old()
        return objects.made


def _call(command: Sequence[str | Path], folder: str | Path) -> str:
    """Run a program. Returns what it says. Raises RuntimeError with its lines about errors."""
    environment = None if _has_mypy() else {**os.environ, "PYTHONPATH": str(TOOLS)}
    run = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, text=True, capture_output=True, check=False
    )
    if run.returncode:
        said = [line for line in (run.stdout + run.stderr).splitlines() if "error" in line.lower()]
        raise RuntimeError("\n".join(said[:20]) or run.stderr[-2000:] or f"{command[0]} ended with {run.returncode}")
    return run.stdout


def compile_to(target: Path) -> list[Path]:
    """Compile into ``target``, laid out like the root of the project. Returns what is there now.

    Raises RuntimeError with the words of mypyc or of the compiler.
    """
    with TemporaryDirectory() as folder:
        copy = Path(folder)  # so that nobody changes it meanwhile
        shutil.copytree(ROOT / PACKAGE, copy / PACKAGE, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        names = [str(path.relative_to(copy)) for path in sources(copy)]
        made = build(copy, names, PACKAGE, target, CACHE / "objects")
        print(f"{len(names)} modules; {len(made)} C files had to be compiled", flush=True)
        (target / "digest").write_text(digest(copy))
    return list(target.rglob(f"*{_SUFFIX}"))


# ---- where they go ---------------------------------------------------------------------------------------------------


def prepare() -> None:
    """Have ``READY`` hold the modules compiled from the sources as they are. Raises RuntimeError."""
    if _text(READY / "digest") == digest():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=CACHE) as folder:
        if not _has_mypy() and not TOOLS.exists():
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _call([*pip, "--target", f"{folder}/tools", *NEEDED], ROOT)
            Path(folder, "tools").rename(TOOLS)
        made = Path(folder, "made")
        compile_to(made)
        shutil.rmtree(READY, ignore_errors=True)
        made.rename(READY)


def place() -> None:
    """Put what is in ``READY`` beside the sources."""
    remove()
    for path in READY.rglob(f"*{_SUFFIX}"):
        shutil.copyfile(path, ROOT / path.relative_to(READY))
    shutil.copyfile(READY / "digest", PLACED)


def run(command: list[str]) -> None:
    """Become a broker: a compiled one if that was done behind the one before; otherwise have it done behind this one.

    Modules are not placed while another broker runs that was started so: what it has yet to import would not fit what
    it has. ``COMPILE=no`` leaves everything as it is, and so do continuous integration and tests.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    running = (CACHE / "running").open("a")
    is_alone = _lock(running)
    if not is_alone:
        fcntl.flock(running, fcntl.LOCK_SH)  # waits for one that just places modules
    now = digest()
    if compiled() and _text(PLACED) != now:
        remove()
    is_unwanted = os.environ.get("COMPILE") == "no" or "CI" in os.environ or "PYTEST_CURRENT_TEST" in os.environ
    if not compiled() and not is_unwanted:
        if _text(READY / "digest") != now:
            print(_compile_behind(now) if can_compile() else "", end="")
        elif is_alone:
            place()
            print("The broker runs compiled from now on (`make interpreted` goes back to the sources).")
    fcntl.flock(running, fcntl.LOCK_SH)
    os.set_inheritable(running.fileno(), True)  # the broker holds it until it ends
    sys.stdout.flush()
    os.execvp(command[0], command)


def _lock(file: IO[str]) -> bool:
    """Lock a file until it is closed. False: somebody else has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _compile_behind(now: str) -> str:
    """Begin to compile in another process, which Ctrl-C ends as it ends the broker. Returns what to say about it."""
    if _text(FAILED) == now:
        where = LOG.relative_to(ROOT)
        return f"The broker runs from its sources: compiling failed, {where} says why, `make compile` tries again.\n"
    command = [sys.executable, __file__, "--behind"]
    with LOG.open("a") as log:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)
    return "The broker runs from its sources, which are compiled for the next start (COMPILE=no: not).\n"


def _behind() -> int:
    """Compile at the lowest priority, if nobody does. Returns at once, and goes on in another process."""
    if os.fork():
        return 0  # so that the process that becomes the broker has no child that it does not know
    lock = (CACHE / "lock").open("a")
    if not _lock(lock):
        return 0
    os.nice(19)
    with suppress(
        AttributeError, OSError
    ):  # where that can be: disks serve others first, and it runs out of memory first
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        Path("/proc/self/oom_score_adj").write_text("1000")
    FAILED.unlink(missing_ok=True)
    now = digest()
    try:
        prepare()
    except RuntimeError as error:
        print(error, flush=True)
        FAILED.write_text(now)
        return 1
    except KeyboardInterrupt:
        return 1
    return 0


def main() -> int:
    """The exit code: 0, or 1 when it does not compile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--remove", action="store_true", help="go back to the sources")
    choice.add_argument("--stale", action="store_true", help="go back to the sources if they have changed")
    choice.add_argument("--run", nargs=argparse.REMAINDER, metavar="COMMAND", help="start a broker")
    choice.add_argument("--behind", action="store_true", help="compile at low priority, for the next --run")
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments.run)
    if arguments.behind:
        return _behind()
    if arguments.remove:
        remove()
    elif arguments.stale:
        if is_stale():
            remove()
            print("The sources have changed since they were compiled, so they run now; `make compile` compiles again.")
    elif not compiled() or is_stale():
        remove()
        print("Compiling, which takes minutes the first time, and seconds after a change …", flush=True)
        try:
            prepare()
        except RuntimeError as error:
            print(f"not compiled, the sources run as they are:\n{error}", file=sys.stderr)
            return 1
        place()
        print("Compiled. `make interpreted` goes back to the sources.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
