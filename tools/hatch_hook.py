"""Part of the wheel's build: compiles the hot modules into it (see `compile.py`).

A wheel is compiled where there are a C compiler and Python's headers, and has the sources elsewhere, or if that fails.
ARTEMIS_PY_MYPYC=1 makes a failure one of the build, 0 does not compile. An editable install never compiles.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE: Final = "ARTEMIS_PY_MYPYC"


def _loaded() -> ModuleType:
    specification = importlib.util.spec_from_file_location("compile", Path(__file__).with_name("compile.py"))
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


compiling: Final = _loaded()


def wish() -> str:
    """How a wheel is wanted: compiled ("must"), compiled if it works ("may"), or not ("no")."""
    asked = os.environ.get(VARIABLE)
    if asked is not None:
        return "must" if asked == "1" else "no"
    return "may" if compiling.can_compile() else "no"


class CompileHook(BuildHookInterface):  # type: ignore[misc]
    """Adds compiled modules to a wheel, which is then for one platform and version of Python."""

    def dependencies(self) -> list[str]:
        """What only such a build needs. Hatch does not tell whether the build is an editable one, which does not."""
        return [] if wish() == "no" else list(compiling.NEEDED)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatch before it collects files. An editable install runs its sources."""
        if version == "editable":
            return
        wanted = wish()
        if wanted == "no":
            if VARIABLE not in os.environ:
                print("no C compiler, or no headers of Python: the wheel has the sources", file=sys.stderr)
            return
        target = Path(mkdtemp())
        try:
            made = compiling.compile_to(target)
        except RuntimeError as error:
            if wanted == "must":
                raise
            print(f"not compiled, the wheel has the sources ({VARIABLE}=0 does not try): {error}", file=sys.stderr)
            return
        for path in made:
            build_data["force_include"][str(path)] = str(path.relative_to(target))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
