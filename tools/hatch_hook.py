"""Part of the wheel's build: compiles the hot modules into it (see `compile.py`).

ARTEMIS_PY_MYPYC=1 asks for it, 0 refuses it. Without the variable a wheel from a source distribution is compiled where
there are a C compiler and Python's headers, and falls back to the sources if that fails; a wheel from a checkout has
the sources.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE: Final = "ARTEMIS_PY_MYPYC"
NEEDED: Final = ["mypy>=2,<3", "setuptools>=75", "mypy_extensions>=1,<2"]


def wish(root: Path) -> str:
    """How the wheel built in ``root`` is wanted: compiled ("must"), compiled if it works ("may"), or not ("no")."""
    asked = os.environ.get(VARIABLE)
    if asked is not None:
        return "must" if asked == "1" else "no"
    is_distribution = (root / "PKG-INFO").exists()
    return "may" if is_distribution and can_compile() else "no"


def can_compile() -> bool:
    """Are there a C compiler and the headers of this Python?"""
    compiler = os.environ.get("CC", "").partition(" ")[0] or "cc"
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    return (shutil.which(compiler) or shutil.which("gcc")) is not None and headers.exists()


class CompileHook(BuildHookInterface):  # type: ignore[misc]
    """Adds compiled modules to a wheel, which is then for one platform and version of Python."""

    def dependencies(self) -> list[str]:
        """What only such a build needs."""
        return [] if wish(Path(self.root)) == "no" else NEEDED

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatch before it collects files. An editable install runs its sources."""
        wanted = "no" if version == "editable" else wish(Path(self.root))
        if wanted == "no":
            return
        target = Path(mkdtemp())
        try:
            made = _compile_to(Path(self.root), target)
        except RuntimeError as error:
            if wanted == "must":
                raise
            print(f"not compiled, the wheel has the sources ({VARIABLE}=0 does not try): {error}", file=sys.stderr)
            return
        for path in made:
            build_data["force_include"][str(path)] = str(path.relative_to(target))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _compile_to(root: Path, target: Path) -> list[Path]:
    specification = importlib.util.spec_from_file_location("compile", root / "tools" / "compile.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    made: list[Path] = module.compile_to(target)
    return made
