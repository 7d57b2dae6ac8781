"""The version of the package, in one place: the build, ``--version`` and ``artemis_build_info`` read it here."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
