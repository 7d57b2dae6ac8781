"""What `tools/compile.py` compiles again after a change, what `make run` takes of it, and what mypyc gets wrong."""

from __future__ import annotations

import ast
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.kit.process import eventually
from tests.kit.sources import ROOT

MODULES = {
    "shapes.py": "class Shape:\n    def __init__(self, width: int) -> None:\n        self.width = width\n",
    "sizes.py": "def size(width: int) -> str:\n    return 'wide' if width > 3 else 'narrow'\n",
    "uses.py": (
        "from small.shapes import Shape\nfrom small.sizes import size\n"
        "def told(width: int) -> str:\n    return f'{size(Shape(width).width)} {width}'\n"
    ),
    "alone.py": "def alone() -> str:\n    return 'alone'\n",
}
ASKED = "import small.uses, small.alone as a; print(small.uses.told(5), a.alone(), a.__file__.endswith('.so'))"


COMPILE = import_module("tools.compile")
needs_compilers = pytest.mark.skipif(
    not COMPILE.can_compile() or any(find_spec(name) is None for name in ("mypyc", "setuptools")),
    reason="mypy, setuptools or a C compiler is missing",
)


METHODS = """class Shape:
    def first(self) -> int:
        return -1
    def second(self) -> int:
        return self.width
"""


class Small:
    """A package of four modules, and what was made of it. What mypyc adds to every library is compiled once for all
    tests here, as their cache is one.
    """

    def __init__(self, folder: Path) -> None:
        self._root, self._target, self._cache = folder / "root", folder / "target", folder.parent / "compiled"
        self._library = folder.name
        (self._root / "small").mkdir(parents=True)
        (self._root / "small" / "__init__.py").touch()
        for name, text in MODULES.items():
            (self._root / "small" / name).write_text(text)

    def change(self, name: str, before: str, after: str) -> None:
        path = self._root / "small" / name
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))

    def build(self) -> set[str]:
        """The modules that had to be compiled."""
        names = [f"small/{name}" for name in MODULES]
        made = COMPILE.build(self._root, names, self._library, self._target, self._cache)
        return {name.removeprefix("small___") for name in made} & {name.removesuffix(".py") for name in MODULES}

    def answer(self) -> str:
        (self._target / "small" / "__init__.py").touch()
        run = subprocess.run(
            [sys.executable, "-c", ASKED], cwd=self._target, capture_output=True, text=True, check=True, timeout=60
        )
        return run.stdout.strip()


@needs_compilers
def test_what_a_change_concerns_is_compiled_again_and_nothing_else(tmp_path: Path) -> None:
    small = Small(tmp_path)
    assert small.build() == {"shapes", "sizes", "uses", "alone"}
    assert small.answer() == "wide 5 alone True"
    assert small.build() == set()

    small.change("alone.py", "def alone", "# a comment without a line of its own\ndef alone")
    small.change("sizes.py", "'narrow'", "'of no width at all'")
    small.change("sizes.py", "'wide'", "'broad'")
    assert small.build() == {"sizes", "alone"}, "literals and lines"
    assert small.answer() == "broad 5 alone True"

    small.change(
        "shapes.py", "        self.width = width\n", "        self.depth = 'deep'\n        self.width = width\n"
    )
    assert small.build() == {"shapes", "uses"}, "the place of an attribute that is read there"
    assert small.answer() == "broad 5 alone True"

    small.change("sizes.py", "width: int)", "width: int, least: int = 9)")
    small.change("sizes.py", "> 3", "> least")
    assert small.build() == {"sizes", "uses"}, "a function that is called there"
    assert small.answer() == "of no width at all 5 alone True"

    small.change("sizes.py", ", least: int = 9", "")
    small.change("sizes.py", "> least", "> 3")
    assert small.build() == set(), "as it was before"
    assert small.answer() == "broad 5 alone True"


@needs_compilers
def test_what_mypy_does_not_compare_is_never_stale(tmp_path: Path) -> None:
    """Modules that use a class read its table of methods by number, and do not ask whether it has an attribute that its
    ``__init__`` always sets.
    """
    small = Small(tmp_path)
    small.change("shapes.py", "class Shape:\n", METHODS)
    small.change("uses.py", "Shape(width).width", "Shape(width).second()")
    small.build()
    assert small.answer() == "wide 5 alone True"

    lines = METHODS.splitlines(keepends=True)
    small.change("shapes.py", METHODS, "".join([lines[0], *lines[3:5], *lines[1:3], *lines[5:]]))
    assert small.build() == {"shapes", "uses"}
    assert small.answer() == "wide 5 alone True"

    small.change("uses.py", "Shape(width).second()", "Shape(width).width")
    small.change("shapes.py", "        self.width = width\n", "        if width > 9:\n            self.width = width\n")
    assert small.build() == {"shapes", "uses"}
    with pytest.raises(subprocess.CalledProcessError) as refused:
        small.answer()
    assert "AttributeError: attribute 'width' of 'Shape' undefined" in refused.value.stderr


@needs_compilers
def test_an_error_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    small = Small(tmp_path)
    small.change("alone.py", "'alone'", "1")
    with pytest.raises(RuntimeError, match=r"small/alone.py:2: error: Incompatible return value type"):
        small.build()


def test_a_header_with_something_new_is_not_guessed_at() -> None:
    with pytest.raises(RuntimeError, match="an unexpected part: static inline"):
        COMPILE.Declarations().add("#include <Python.h>\nextern int a;\nstatic inline int f(void) { return 1; }\n")


# ---- make run --------------------------------------------------------------------------------------------------------


@dataclass
class Checkout:
    """A project whose only module is started as ``make run`` starts a broker. What is behind it has all the time that
    it needs.
    """

    folder: Path
    cache: Path

    def start(self, **environment: str) -> str:
        """What is said, and whether the module was compiled."""
        program = "import artemis_py.message as one; print(one.__file__.rpartition('.')[2])"
        kept = {name: text for name, text in os.environ.items() if name not in {"CI", "COMPILE", "PYTEST_CURRENT_TEST"}}
        run = subprocess.run(
            [sys.executable, str(self.folder / "tools" / "compile.py"), "--run", sys.executable, "-c", program],
            cwd=self.folder, env={**kept, "PYTHONPATH": str(self.folder), **environment},
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert run.stderr == ""
        return run.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    made = Checkout(tmp_path, tmp_path / ".cache" / "compile")
    (tmp_path / "tools").mkdir()
    for name in ("compile.py", "translate.py"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools")
    (tmp_path / "sitecustomize.py").write_text("import os\nos.nice = os.sched_setscheduler = lambda *_: None\n")
    for name in ("__init__.py", "message.py", *COMPILE.NOT_COMPILED):
        path = tmp_path / "artemis_py" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("NAME = 'message'\n")
    yield made
    made.cache.mkdir(parents=True, exist_ok=True)
    with (made.cache / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # nothing works behind the end of the test


BEGUN = "The broker runs from its sources, which are compiled for the next start (COMPILE=no: not).\npy\n"


@needs_compilers
def test_the_next_start_is_compiled(checkout: Checkout) -> None:
    assert checkout.start() == BEGUN
    eventually("compiled", (checkout.cache / "ready" / "digest").exists, bool)
    assert not list((checkout.folder / "artemis_py").rglob("*.so")), "not beside a broker that may run"
    assert checkout.start(COMPILE="no") == "py\n"
    with (checkout.cache / "running").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert checkout.start() == "py\n", "another broker runs from the sources"
    said = checkout.start()
    assert said == "The broker runs compiled from now on (`make interpreted` goes back to the sources).\nso\n"
    assert checkout.start() == checkout.start(COMPILE="no") == "so\n"
    assert checkout.start(CI="true", MYPYC_OPT_LEVEL="1") == "py\n", "not compiled as now is wanted"
    checkout.start()
    (checkout.folder / "artemis_py" / "message.py").write_text("NAME = 'another'\n")
    assert checkout.start(CI="true") == "py\n", "made of other sources"


@needs_compilers
def test_a_failure_is_told_and_not_tried_again(checkout: Checkout) -> None:
    (checkout.folder / "artemis_py" / "message.py").write_text("NAME: int = 'message'\n")
    assert checkout.start() == BEGUN
    eventually("the failure", (checkout.cache / "failed").exists, bool)
    said = "compiling failed, .cache/compile/log says why, `make compile` tries again.\npy\n"
    assert checkout.start() == checkout.start() == f"The broker runs from its sources: {said}"
    assert "Incompatible types in assignment" in (checkout.cache / "log").read_text()
    (checkout.folder / "artemis_py" / "message.py").write_text("NAME = 'message'\n")
    assert checkout.start() == BEGUN


@needs_compilers
def test_one_at_a_time(checkout: Checkout) -> None:
    checkout.cache.mkdir(parents=True)
    with (checkout.cache / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert checkout.start() == BEGUN
    assert checkout.start(PYTEST_CURRENT_TEST="a test") == checkout.start(CI="true") == "py\n"
    assert not (checkout.cache / "ready").exists()


# ---- what mypyc compiles wrongly -------------------------------------------------------------------------------------


def _wrong_in(tree: ast.Module) -> Iterator[str]:
    todo: list[tuple[ast.AST, dict[str, str]]] = [(tree, {})]
    while todo:
        node, caught = todo.pop()  # the types of exceptions, by their names in the function around it
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            caught = {}
        elif isinstance(node, ast.ExceptHandler) and node.name and node.type:
            if caught.setdefault(node.name, ast.dump(node.type)) != ast.dump(node.type):
                yield f"{node.lineno}: one name for exceptions of two types has, compiled, the type of the first"
        elif isinstance(node, ast.Attribute) and node.attr == "_thread":
            yield "an attribute _thread is a word of C"
        todo += [(below, caught) for below in ast.iter_child_nodes(node)]
    for statement in tree.body:
        match statement:
            case ast.AnnAssign(annotation=ast.Name("Final"), value=ast.Tuple() as value):
                if any(isinstance(one, ast.Constant) and isinstance(one.value, float) for one in value.elts):
                    yield f"{ast.unparse(statement.target)}: compiled, a tuple of floats counts as not set"


def test_there_is_nothing_that_is_compiled_wrongly() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {what}"
        for path in COMPILE.sources()
        for what in _wrong_in(ast.parse(path.read_text()))
    ]
    assert not found, "\n".join(found)
