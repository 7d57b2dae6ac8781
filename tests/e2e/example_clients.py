"""How the examples of docs/clients.md get their libraries, and how each is run. What a machine lacks is ``Absent``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.e2e.foreign_clients import CACHE, INSTALL_S_MAX, PROGRAMS, Absent, attempt, folder_for, new_folder, tool

EXAMPLES: Final = PROGRAMS / "examples"

Prepare = Callable[[Path], list[str]]
"""Makes ready for an example in the folder of the file given; returns the command that runs it. Raises Absent."""

PYTHON_PACKAGES: Final = ("aiostomp==1.7.3", "stompest==2.3.0")


def installed_python(file: Path) -> list[str]:
    """stomp.py and stompman are among what the tests need."""
    return [sys.executable, str(file)]


def fetched_python(file: Path) -> list[str]:
    """Python packages that nothing else here needs, in a folder of their own."""
    target = CACHE / "python-examples"
    if not target.exists():
        with new_folder(target) as folder:
            attempt(
                [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *PYTHON_PACKAGES], folder
            )
    start = (
        f"import runpy, sys; sys.path.insert(0, {str(target)!r}); runpy.run_path({str(file)!r}, run_name='__main__')"
    )
    return [sys.executable, "-c", start]


def node(file: Path) -> list[str]:
    """npm's packages, linked beside the example, where modules look for them."""
    program, npm = tool("node"), tool("npm")
    manifests = [EXAMPLES / "node" / "package.json", EXAMPLES / "node" / "package-lock.json"]
    target = folder_for("node-examples", *manifests)
    if not target.exists():
        with new_folder(target) as folder:
            for manifest in manifests:
                shutil.copy(manifest, folder)
            attempt([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"], folder)
    (file.parent / "node_modules").symlink_to(target / "node_modules")
    return [program, str(file)]


def go(file: Path) -> list[str]:
    """A module with the versions of the other program in Go."""
    program = tool("go")
    for name in ("go.mod", "go.sum"):
        shutil.copy(PROGRAMS / "go" / name, file.parent)
    environment = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
    attempt([program, "mod", "download", "github.com/go-stomp/stomp/v3"], file.parent, environment)
    command = [program, "build", "-buildvcs=false", "-o", "greet", "."]
    subprocess.run(command, cwd=file.parent, env={**os.environ, **environment}, timeout=INSTALL_S_MAX, check=True)
    return [str(file.parent / "greet")]


def ruby(file: Path) -> list[str]:
    """The gem of this machine, else out of Debian's package."""
    program = tool("ruby")
    if subprocess.run([program, "-e", "require 'stomp'"], capture_output=True, check=False).returncode == 0:
        return [program, str(file)]
    return [program, "-I", str(_debian("ruby-stomp") / "usr/share/rubygems-integration/all/gems"), str(file)]


def perl(file: Path) -> list[str]:
    """The module of this machine, else out of Debian's packages."""
    program = tool("perl")
    if subprocess.run([program, "-MNet::Stomp", "-e", "1"], capture_output=True, check=False).returncode == 0:
        return [program, str(file)]
    found = _debian("libnet-stomp-perl", "libclass-accessor-perl", "liblog-any-perl")
    return [program, f"-I{found / 'usr/share/perl5'}", str(file)]


def php(file: Path) -> list[str]:
    """The extension must be there: it is compiled for one version of PHP."""
    program = tool("php")
    if "\nstomp\n" not in subprocess.run([program, "-m"], capture_output=True, text=True, check=False).stdout.lower():
        raise Absent("PHP has no extension stomp (Debian's php-stomp, or pecl install stomp)")
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


def java(file: Path) -> list[str]:
    """Maven's packages; Java compiles the example itself."""
    program, maven = tool("java"), tool("mvn")
    target = folder_for("java-examples", EXAMPLES / "java" / "pom.xml")
    if not target.exists():
        with new_folder(target) as folder:
            shutil.copy(EXAMPLES / "java" / "pom.xml", folder)
            attempt([maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], folder)
    return [program, "-cp", f"{target}/lib/*", str(file)]


def rust(file: Path) -> list[str]:
    """A crate of its own, compiled with all that it needs: a minute."""
    cargo = tool("cargo")
    target = folder_for("rust-examples", *(EXAMPLES / "rust" / name for name in ("Cargo.toml", "Cargo.lock")))
    if not target.exists():
        with new_folder(target) as folder:
            for name in ("Cargo.toml", "Cargo.lock"):
                shutil.copy(EXAMPLES / "rust" / name, folder)
            (folder / "src").mkdir()
            shutil.copy(file, folder / "src")
            attempt([cargo, "fetch", "--locked"], folder)
    shutil.copy(file, target / "src" / "main.rs")
    subprocess.run([cargo, "build", "--quiet", "--locked"], cwd=target, timeout=600, check=True)
    return [str(target / "target" / "debug" / "greet")]


def _debian(*packages: str) -> Path:
    """The folder into which packages of Debian were taken apart."""
    target = CACHE / f"debian-{packages[0]}"
    if not target.exists():
        apt_get, dpkg = tool("apt-get"), tool("dpkg")
        with new_folder(target) as folder:
            attempt([apt_get, "-o", "Acquire::http::Timeout=15", "download", *packages], folder)
            for package in folder.glob("*.deb"):
                attempt([dpkg, "-x", str(package), str(folder)], folder)
    return target


PREPARE: Final[Mapping[str, Prepare]] = {
    "greet_stomp_py.py": installed_python,
    "greet_stompman.py": installed_python,
    "greet_aiostomp.py": fetched_python,
    "greet_stompest.py": fetched_python,
    "greet-stompjs.mjs": node,
    "greet-rx-stomp.mjs": node,
    "greet-stompit.cjs": node,
    "main.go": go,
    "greet.rb": ruby,
    "greet.pl": perl,
    "greet.php": php,
    "greet-stomp-php.php": composed_php,
    "Greet.java": java,
    "Spring.java": java,
    "main.rs": rust,
}
SLOW: Final = frozenset({"main.rs"})
