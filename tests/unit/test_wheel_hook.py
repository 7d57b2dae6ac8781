"""When a wheel is compiled: where that can be, unless somebody wants otherwise."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

HOOK = import_module("tools.hatch_hook")


def _hook_of(root: Path) -> Any:
    return HOOK.CompileHook(str(root), {}, None, None, str(root), "wheel")


@pytest.mark.parametrize(
    ("asked", "has_compiler", "wanted"),
    [
        ("1", False, "must"),
        ("1", True, "must"),
        ("0", True, "no"),
        ("", True, "no"),
        (None, True, "may"),
        (None, False, "no"),
    ],
)
def test_wish(monkeypatch: pytest.MonkeyPatch, asked: str | None, has_compiler: bool, wanted: str) -> None:
    monkeypatch.delenv("ARTEMIS_PY_MYPYC", raising=False)
    if asked is not None:
        monkeypatch.setenv("ARTEMIS_PY_MYPYC", asked)
    monkeypatch.setattr(HOOK.compiling, "can_compile", lambda: has_compiler)
    assert HOOK.wish() == wanted


def test_a_machine_without_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("ARTEMIS_PY_MYPYC", raising=False)
    assert not HOOK.compiling.can_compile()
    made = _hook_of(tmp_path)
    assert made.dependencies() == []
    made.initialize("standard", {})
    assert "no C compiler, or no headers of Python: the wheel has the sources" in capsys.readouterr().err


def test_a_failure_falls_back_to_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ARTEMIS_PY_MYPYC", raising=False)
    monkeypatch.setattr(HOOK.compiling, "can_compile", lambda: True)
    monkeypatch.setattr(HOOK.compiling, "compile_to", Mock(side_effect=RuntimeError("no room")))
    build: dict[str, Any] = {"force_include": {}}
    made = _hook_of(tmp_path)
    assert "mypy>=2.4,<2.5" in made.dependencies()
    made.initialize("standard", build)
    assert build == {"force_include": {}}
    assert (
        "not compiled, the wheel has the sources (ARTEMIS_PY_MYPYC=0 does not try): no room" in capsys.readouterr().err
    )


def test_a_failure_of_what_was_demanded_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTEMIS_PY_MYPYC", "1")
    monkeypatch.setattr(HOOK.compiling, "compile_to", Mock(side_effect=RuntimeError("no room")))
    with pytest.raises(RuntimeError, match="no room"):
        _hook_of(tmp_path).initialize("standard", {"force_include": {}})


def test_compiled_modules_make_the_wheel_one_of_a_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTEMIS_PY_MYPYC", "1")
    monkeypatch.setattr(HOOK.compiling, "compile_to", lambda target: [target / "artemis_py" / "message.so"])
    build: dict[str, Any] = {"force_include": {}}
    _hook_of(tmp_path).initialize("standard", build)
    assert list(build["force_include"].values()) == ["artemis_py/message.so"]
    assert (build["pure_python"], build["infer_tag"]) == (False, True)
    editable: dict[str, Any] = {"force_include": {}}
    _hook_of(tmp_path).initialize("editable", editable)
    assert editable == {"force_include": {}}
