"""The version of the package, and whether the hot modules are compiled.

The build, ``--version`` and ``artemis_build_info`` read the version here.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

VERSION: Final = "0.1.0"

_SAMPLE: Final = find_spec("artemis_py.message")
IS_COMPILED: Final = _SAMPLE is not None and _SAMPLE.origin is not None and not _SAMPLE.origin.endswith(".py")
"""Do the modules that run per message run compiled (``make compile``), or from their sources?"""
