"""Part of the wheel's build: with ARTEMIS_PY_MYPYC=1 the hot modules are compiled into it (see `compile.py`)."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

IS_WANTED = os.environ.get("ARTEMIS_PY_MYPYC") == "1"


class CompileHook(BuildHookInterface):  # type: ignore[misc]
    """Adds compiled modules to a wheel, which is then for one platform and version of Python."""

    def dependencies(self) -> list[str]:
        """What only such a build needs."""
        return ["mypy>=2,<3", "setuptools>=75", "mypy_extensions>=1,<2"] if IS_WANTED else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatch before it collects files. An editable install runs its sources."""
        if not IS_WANTED or version == "editable":
            return
        specification = importlib.util.spec_from_file_location("compile", Path(self.root) / "tools" / "compile.py")
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        target = Path(mkdtemp())
        for path in module.compile_to(target):
            build_data["force_include"][str(path)] = str(path.relative_to(target))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
