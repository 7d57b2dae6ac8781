"""How the examples of docs/clients.md get their libraries, and how each is run. What a machine lacks is ``Absent``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final
from zlib import crc32

from tests.e2e.foreign_clients import COMPILE_S_MAX, PROGRAMS, compiled_go, loading, node_with, perl_with_net_stomp
from tests.kit.packages import CACHE, Absent, attempt, folder_for, new_folder, tool

EXAMPLES: Final = PROGRAMS / "examples"

Prepare = Callable[[Path], list[str]]
"""Makes ready for an example in the folder of the file given; returns the command that runs it. Raises Absent."""

PYTHON_PACKAGES: Final = ("aiostomp==1.7.3", "faststream==0.7.8", "faststream-stomp==2.8.0", "stompest==2.3.0")
PROBE: Final = "class Probe { public static void main(String[] names) throws Exception { Class.forName(names[0]); } }"


def python(library: str, file: Path) -> list[str]:
    """A library of what the tests need, else out of packages that nothing else here needs, in a folder of their own."""
    with suppress(Absent):
        attempt([sys.executable, "-c", f"import {library}"], file.parent)
        return [sys.executable, str(file)]
    target = CACHE / f"python-examples-{crc32(repr(PYTHON_PACKAGES).encode()):08x}"
    if not target.exists():
        with new_folder(target) as folder:
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
            attempt([*install, *PYTHON_PACKAGES], folder)
    at_hand = f"import sys; sys.path.insert(0, {str(target)!r})"
    attempt([sys.executable, "-c", f"{at_hand}; import {library}"], file.parent)
    return [sys.executable, "-c", f"{at_hand}; import runpy; runpy.run_path({str(file)!r}, run_name='__main__')"]


def node(packages: Sequence[str], file: Path) -> list[str]:
    """npm's packages, linked beside the example, where modules look for them."""
    program, modules = node_with(EXAMPLES / "node", *packages)
    (file.parent / "node_modules").symlink_to(modules)
    return [program, str(file)]


def go(file: Path) -> list[str]:
    """A module with the versions of the other program in Go."""
    for name in ("go.mod", "go.sum"):
        shutil.copy(PROGRAMS / "go" / name, file.parent)
    compiled_go(file.parent, file.parent / "greet")
    return [str(file.parent / "greet")]


def php(file: Path) -> list[str]:
    """The extension must be there: it is compiled for one version of PHP."""
    program = tool("php")
    try:
        attempt([program, "-r", "exit(class_exists('Stomp') ? 0 : 1);"], file.parent)
    except Absent as absent:
        raise Absent("PHP has no extension stomp (Debian's php-stomp, or pecl install stomp)") from absent
    return [program, str(file)]


def composed_php(file: Path) -> list[str]:
    """Composer's packages, linked beside the example."""
    program, composer = tool("php"), tool("composer")
    target = CACHE / "php-examples"
    if not target.exists():
        with new_folder(target) as folder:
            attempt([composer, "require", "--quiet", "--no-interaction", "stomp-php/stomp-php:5.1.3"], folder)
    (file.parent / "vendor").symlink_to(target / "vendor")
    return [program, str(file)]


def java(name: str, file: Path) -> list[str]:
    """Maven's packages, with this class; Java compiles the example itself."""
    program, maven = tool("java"), tool("mvn")
    target = folder_for("java-examples", EXAMPLES / "java" / "pom.xml")
    if not target.exists():
        with new_folder(target) as folder:
            shutil.copy(EXAMPLES / "java" / "pom.xml", folder)
            attempt([maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], folder)
    command = [program, "-cp", f"{target}/lib/*"]
    probe = file.parent / "Probe.java"
    probe.write_text(PROBE, "utf-8")
    attempt([*command, str(probe), name], file.parent)
    return [*command, str(file)]


def rust(file: Path) -> list[str]:
    """A crate of its own, compiled with all that it needs: a minute."""
    cargo = tool("cargo")
    target = folder_for("rust-examples", *(EXAMPLES / "rust" / name for name in ("Cargo.toml", "Cargo.lock")))
    build = [cargo, "build", "--quiet", "--locked"]
    if not target.exists():
        with new_folder(target) as folder:
            for name in ("Cargo.toml", "Cargo.lock"):
                shutil.copy(EXAMPLES / "rust" / name, folder)
            (folder / "src").mkdir()
            (folder / "src" / "main.rs").write_text("fn main() {}\n", "utf-8")
            attempt([cargo, "fetch", "--locked"], folder)
            attempt(build, folder, timeout_s=COMPILE_S_MAX)
    shutil.copy(file, target / "src" / "main.rs")
    subprocess.run(build, cwd=target, timeout=COMPILE_S_MAX, check=True)
    return [str(target / "target" / "debug" / "greet")]


GEMS: Final = "usr/share/rubygems-integration/all/gems"
TCP: Final = "@stomp/tcp-wrapper"
PREPARE: Final[Mapping[str, Prepare]] = {
    "greet_stompman.py": partial(python, "stompman"),
    "greet_faststream.py": partial(python, "faststream_stomp"),
    "greet_stomp_py.py": partial(python, "stomp"),
    "greet_aiostomp.py": partial(python, "aiostomp"),
    "greet_stompest.py": partial(python, "stompest.sync"),
    "greet-stompjs.mjs": partial(node, ["@stomp/stompjs", TCP]),
    "greet-rx-stomp.mjs": partial(node, ["@stomp/rx-stomp"]),
    "greet-stompit.cjs": partial(node, ["stompit"]),
    "main.go": go,
    "greet.rb": lambda file: [*loading("ruby", ("-e", "require 'stomp'"), GEMS, "ruby-stomp"), str(file)],
    "greet.pl": lambda file: [*perl_with_net_stomp(), str(file)],
    "greet.php": php,
    "greet-stomp-php.php": composed_php,
    "Greet.java": partial(java, "org.fusesource.stomp.client.Stomp"),
    "Spring.java": partial(java, "org.springframework.messaging.simp.stomp.StompSession"),
    "main.rs": rust,
}
SLOW: Final = frozenset({"main.rs"})
