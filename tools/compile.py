"""Compiles what runs per turn and per message with mypyc: the same sources, twice as fast.

`python tools/compile.py` puts the compiled modules beside their sources, where Python prefers them; `--remove` takes
them away again, `--stale` only if they were made of other sources than those that are here now (every make target does
that first, so that nobody tests what he has not compiled). `--run COMMAND …` starts a broker for `make run`. The build
of a wheel calls `compile_to` (see `hatch_hook.py`).

What makes it quick: `translate.py` has mypyc translate batches of modules, each in a process of its own, into one C
file for each module, while as many C compilers run as there are processors. What they make is kept in
`.cache/compile`, under a digest of all that it was made of, and is never made again. Of a module's C that is its own
source and those of all modules that it imports. Of an object it is the C, with those declarations that it mentions,
and those that these mention. The compiler reads nothing else of ours, and therefore the text alone says whether an
object is still right.

`MYPYC_OPT_LEVEL` is the C compiler's, 2 if it is not set. Tests take 0, for which it needs less than half the time:
they are about what mypyc translates, not about what the C compiler makes of it.
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
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "artemis_py"
MODULES: Final = (
    "histogram.py",
    "replay_log.py",
    "message.py",
    "pending_output.py",
    "paged_messages.py",
    "record_log.py",
    "uploads.py",
    "core/**/*.py",
    "selector/**/*.py",
    "server/*.py",
    "server/events/notification_sender.py",
    "server/tls/connection.py",
    "server/websocket/*.py",
    "stomp/**/*.py",
    "storage/**/*.py",
)
"""What runs per message and per turn, and what stands beside it. Packages' `__init__.py` stay as they are."""
NOT_COMPILED: Final = {
    "server/trace_source.py": "mypyc does not find an attribute of a base that is not compiled",
    "server/websocket/rules.py": "the library binds a function that it is given, and only Python's own can be",
    "storage/format/log_events.py": "mypyc takes 230 MB for its 28 classes alone, and only readers of the log use it",
    "storage/recovery/repair.py": "mypyc has no * within a tuple that is returned",
}
"""The exceptions, with their reasons. They run at a start, or for operators. One without a file is an error."""
NEEDED: Final = ("mypy>=2.4,<2.5", "setuptools>=75", "mypy_extensions>=1,<2")
"""What it takes, besides a C compiler and Python's headers. `translate.py` uses parts of mypyc that others may lack."""
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
_KEPT: Final = 3_000
"""Two for each module, and as many again for each of some changes of everything."""
_SUFFIX: Final = str(sysconfig.get_config_var("EXT_SUFFIX"))
_OPTIONS: Final = ("--config-file=", "--follow-imports=silent", "--no-site-packages", "--ignore-missing-imports")
"""`make check` examines types. Here what else happens to be installed must make no difference."""
_TRANSLATE: Final = Path(__file__).with_name("translate.py")
_BATCH_BYTES: Final = 400_000
"""How much source mypyc translates in one process: with what it knows of other modules that takes up to 200 MB."""


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
    """Of all that compiled modules are made of: types and constants of other modules are in them, too; and how."""
    level = os.environ.get("MYPYC_OPT_LEVEL", "")
    whole = hashlib.sha256(f"{sys.version}\0{level}".encode() + Path(__file__).read_bytes() + _TRANSLATE.read_bytes())
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


# ---- what has to be translated again? --------------------------------------------------------------------------------


class Sources:
    """The modules of a project, and what each of them imports."""

    _IMPORT: Final = re.compile(r"^[ \t]*(?:from[ ]+([\w.]+)[ ]+)?import[ ]+(\([^)]*\)|[^\n]+)", re.MULTILINE)

    def __init__(self, root: Path, compiled: Sequence[str]) -> None:
        packages = {name.partition("/")[0] for name in compiled}
        self.paths: dict[str, str] = {}
        for path in sorted(one for package in packages for one in (root / package).rglob("*.py")):
            name = path.relative_to(root)
            self.paths[".".join(name.with_suffix("").parts).removesuffix(".__init__")] = str(name)
        self.compiled = [name for name, path in self.paths.items() if path in set(compiled)]
        self._texts = {name: (root / path).read_text() for name, path in self.paths.items()}
        self._imports = {name: self._imported_by(name) for name in self.paths}

    def _imported_by(self, module: str) -> list[str]:
        """The modules that a module names after ``import``, each with the packages in which it is."""
        names = [module]
        for source, listed in self._IMPORT.findall(self._texts[module]):
            names += [f"{source}.{one}" if source else one for one in re.findall(r"[\w.]+", listed)]
        parts = [name.split(".") for name in names]
        found = {".".join(one[:count]) for one in parts for count in range(1, len(one) + 1)}
        return sorted(found & self.paths.keys() - {module})

    def with_imports(self, modules: Sequence[str]) -> list[str]:
        """Modules and all that they import, directly or not, each behind what it imports."""
        found: dict[str, None] = {}
        begun: set[str] = set()

        def visit(names: Sequence[str]) -> None:
            for name in names:
                if name not in begun:
                    begun.add(name)
                    visit(self._imports[name])
                    found[name] = None

        visit(modules)
        return list(found)

    def digests(self, known: str) -> dict[str, str]:
        """A digest for each module, of the sources of all that it imports: mypyc looks at them, too."""
        compiled = set(self.compiled)
        own = {
            name: hashlib.sha256(f"{path}\0{name in compiled}\0{self._texts[name]}".encode()).hexdigest()
            for name, path in self.paths.items()
        }
        digests = {}
        for name in self.with_imports(self.compiled):
            parts = [known, name, *(own[one] for one in self.with_imports([name]))]
            digests[name] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return digests

    def batches(self, modules: Sequence[str]) -> Iterator[list[str]]:
        """The same modules, in parts that one process may translate."""
        batch: list[str] = []
        for name in modules:
            if batch and sum(len(self._texts[one]) for one in (*batch, name)) > _BATCH_BYTES:
                yield batch
                batch = []
            batch.append(name)
        if batch:
            yield batch


class Declarations:
    """What the C files of a library tell each other in headers, by name."""

    _ONE: Final = re.compile(
        r"^#ifndef MYPYC_DECLARED_\w+\n.*?^\} (?P<tuple>\w+);\n#endif *\n"
        r"|^typedef struct \{\n.*?^\} (?P<struct>\w+);\n"
        r"|^(?:extern )?\w[^\n{}(]*?(?P<name>\w+)(?:\[\w*\])*(?:\([^\n]*\))?;\n",
        re.MULTILINE | re.DOTALL,
    )
    _INCLUDE: Final = re.compile(r'^#include (?:<\w+\.h>|"(?!__native_)\w+\.h")\n', re.MULTILINE)
    _FRAME: Final = re.compile(r"^#(?:ifndef MYPYC_\w+_H|define MYPYC_\w+_H|endif|include [^\n]+) *$", re.MULTILINE)

    def __init__(self) -> None:
        self._by_name: dict[str, tuple[str, set[str]]] = {}

    def add(self, headers: str) -> str:
        """Learn those of one more module. Returns what it includes. Raises RuntimeError if it is not understood."""
        for one in self._ONE.finditer(headers):
            words = set(re.findall(r"[A-Za-z_]\w*", one[0]))
            self._by_name[one["tuple"] or one["struct"] or one["name"]] = (one[0], words)
        if left := self._FRAME.sub("", self._ONE.sub("", headers)).strip():
            raise RuntimeError(f"a header has an unexpected part: {left[:100]}")
        return "".join(dict.fromkeys(self._INCLUDE.findall(headers)))

    def needed_by(self, words: set[str]) -> str:
        """Those that a text of these words mentions, each behind those that it mentions; else by name."""
        found: dict[str, str] = {}
        begun: set[str] = set()

        def visit(words: set[str]) -> None:
            for name in sorted(self._by_name.keys() & words - begun):
                begun.add(name)
                visit(self._by_name[name][1])
                found[name] = self._by_name[name][0]

        visit(words)
        return "".join(found.values())


# ---- from C files to modules -----------------------------------------------------------------------------------------


_HIDDEN: Final = "#pragma GCC visibility push(hidden)\n"
"""All of it becomes one library, so nothing in it has to be looked up by name when it is called."""
_SHIM: Final = """\
typedef struct _object PyObject;
extern PyObject *PyImport_ImportModule(const char *), *PyObject_GetAttrString(PyObject *, const char *);
extern void *PyCapsule_GetPointer(PyObject *, const char *), Py_DecRef(PyObject *);
PyObject *PyInit_{name}(void) {{
    PyObject *library = PyImport_ImportModule("{library}");
    PyObject *capsule = library ? PyObject_GetAttrString(library, "init_{c_name}") : 0;
    PyObject *(*begin)(void) = capsule ? PyCapsule_GetPointer(capsule, "{library}.init_{c_name}") : 0;
    Py_DecRef(capsule);
    Py_DecRef(library);
    return begin ? begin() : 0;
}}
"""
"""What stands beside a source: it only asks the library for its contents. Python's headers take longer to read."""


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


def build(root: Path, names: Sequence[str], library: str, target: Path, cache: Path) -> list[str]:
    """Compile modules, given by their paths below ``root``, into ``target``, laid out like ``root``.

    ``library`` begins the name of what they share. Returns what was not in the cache. Raises RuntimeError with the
    words of mypyc or of the compiler.
    """
    asked = {"cache": str(cache), "library": library, "options": _OPTIONS, "compiled": list(names), "wanted": {}}
    plan = json.loads(_call([sys.executable, _TRANSLATE, json.dumps(asked)], root))
    runtime = Path(plan["runtime"])
    known = [sys.version, plan["version"], library, *_OPTIONS, _TRANSLATE.read_text()]
    sources = Sources(root, names)
    digests = sources.digests("\0".join(known))
    known = [sys.version, _call([plan["compiler"][0], "--version"], root)]
    known += [path.read_text() for path in sorted(runtime.rglob("*.[ch]"))]
    objects = Objects(cache / "objects", [str(runtime), sysconfig.get_path("include")], "\0".join(known))
    translated = cache / "translated"
    translated.mkdir(parents=True, exist_ok=True)
    declarations = Declarations()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        begun: list[Future[Path]] = []
        shims: dict[str, Future[Path]] = {}

        def begin(name: str, text: str, command: Sequence[str] = (*plan["compiler"], "-c")) -> Future[Path]:
            return pool.submit(objects.get, name, text, list(command))

        try:
            begun.append(begin(f"{library}__mypyc", plan["library"]))
            begun += [begin(Path(name).stem, (runtime / name).read_text()) for name in plan["always"]]
            also: dict[str, None] = {}
            stale = [name for name in digests if not (translated / digests[name]).exists()]
            fresh = [name for name in sources.compiled if name not in stale]
            for batch in (fresh, *sources.batches(stale)):
                if batch is not fresh:
                    asked |= {"wanted": {name: sources.paths[name] for name in batch}, "digests": digests}
                    with (cache / "translating").open("a") as lock:
                        fcntl.flock(lock, fcntl.LOCK_EX)
                        _call([sys.executable, _TRANSLATE, json.dumps(asked)], root)
                read = {name: _read(translated / digests[name]) for name in batch if name in sources.compiled}
                includes = {name: declarations.add(headers) for name, (_, headers, *_) in read.items()}
                also |= dict.fromkeys(re.findall(r'"(\w+)\.h"', "".join(includes.values())))
                # The longest begins first, so that none is left over alone.
                for name, (c_name, _, code, words) in sorted(read.items(), key=lambda one: -len(one[1][2])):
                    begun.append(begin(c_name, includes[name] + _HIDDEN + declarations.needed_by(words) + code))
                    shim = _SHIM.format(name=name.rpartition(".")[2], c_name=c_name, library=f"{library}__mypyc")
                    shims[name] = begin(f"{c_name}_shim", shim, (*plan["linker"], *plan["compiler"][1:], "-O0"))
            begun += [begin(name, (runtime / f"{name}.c").read_text()) for name in also]
            linked = [one.result() for one in begun]
            for name, made in shims.items():
                place = target / (name.replace(".", "/") + _SUFFIX)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(made.result(), place)
        finally:
            pool.shutdown(cancel_futures=True)
    _call([*plan["linker"], *linked, "-o", target / f"{library}__mypyc{_SUFFIX}"], root)
    _forget_old(cache / "objects")
    _forget_old(translated)
    return objects.made


def _read(path: Path) -> tuple[str, str, str, set[str]]:
    """What `translate.py` made of a module: its name in C, what it declares, its code, and the words in that."""
    os.utime(path)
    name, headers, code, words, _ = json.loads(zlib.decompress(path.read_bytes()))
    return name, headers, code, set(words)


def _forget_old(folder: Path) -> None:
    """Keep what was used last."""
    for path in sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime)[:-_KEPT]:
        path.unlink(missing_ok=True)


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
        made = build(copy, names, PACKAGE, target, CACHE)
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
