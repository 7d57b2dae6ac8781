"""Reports in files of their own: written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from artemis_py.atomic_files import replace_file
from artemis_py.errors import PipelineError


def may_be_written(path: Path) -> bool:
    """May this user write the file, and others beside it?"""
    target = Path(os.path.realpath(path))
    if target.exists() and not os.access(target, os.W_OK):
        return False
    return _is_device(target) or os.access(target.parent, os.W_OK | os.X_OK)


def write_report(path: Path, text: str) -> None:
    """Write a file, or replace one. Raises PipelineError; then it is as it was."""
    try:
        if _is_device(path):
            path.write_text(text, "utf-8")
        else:
            replace_file(path, text.encode(), mode=None)
    except OSError as error:
        raise PipelineError(f"{path} cannot be written: {error.strerror or error}") from None


def _is_device(path: Path) -> bool:
    """Is it a pipe or a terminal, such as /dev/stdout?"""
    return path.exists() and not path.is_file()
