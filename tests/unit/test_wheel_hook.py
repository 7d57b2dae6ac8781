"""When a wheel is compiled: on demand, and from a source distribution where that can be."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.tidy.sources import ROOT


@pytest.fixture
def hook() -> ModuleType:
    specification = importlib.util.spec_from_file_location("hatch_hook", ROOT / "tools" / "hatch_hook.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def distribution(tmp_path: Path) -> Path:
    """What a source distribution has that a checkout lacks."""
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\n")
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "is_distribution", "has_compiler", "wanted"),
    [
        ("1", False, False, "must"),
        ("1", True, True, "must"),
        ("0", True, True, "no"),
        ("", True, True, "no"),
        (None, True, True, "may"),
        (None, True, False, "no"),
        (None, False, True, "no"),
    ],
)
def test_wish(
    hook: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: str | None,
    is_distribution: bool,
    has_compiler: bool,
    wanted: str,
) -> None:
    if is_distribution:
        (tmp_path / "PKG-INFO").touch()
    monkeypatch.delenv("ARTEMIS_PY_MYPYC", raising=False)
    if asked is not None:
        monkeypatch.setenv("ARTEMIS_PY_MYPYC", asked)
    monkeypatch.setattr(hook, "can_compile", lambda: has_compiler)
    assert hook.wish(tmp_path) == wanted


def test_a_machine_without_a_compiler(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    assert not hook.can_compile()


def _hook_of(hook: ModuleType, root: Path) -> Any:
    return hook.CompileHook(str(root), {}, None, None, str(root), "wheel")


def _fails(_root: Path, _target: Path) -> list[Path]:
    raise RuntimeError("no room")


def test_a_failure_falls_back_to_the_sources(
    hook: ModuleType, distribution: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ARTEMIS_PY_MYPYC", raising=False)
    monkeypatch.setattr(hook, "can_compile", lambda: True)
    monkeypatch.setattr(hook, "_compile_to", _fails)
    build: dict[str, Any] = {"force_include": {}}
    made = _hook_of(hook, distribution)
    assert "mypy>=2,<3" in made.dependencies()
    made.initialize("standard", build)
    assert build == {"force_include": {}}
    assert (
        "not compiled, the wheel has the sources (ARTEMIS_PY_MYPYC=0 does not try): no room" in capsys.readouterr().err
    )


def test_a_failure_of_what_was_demanded_is_one(
    hook: ModuleType, distribution: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTEMIS_PY_MYPYC", "1")
    monkeypatch.setattr(hook, "_compile_to", _fails)
    with pytest.raises(RuntimeError, match="no room"):
        _hook_of(hook, distribution).initialize("standard", {"force_include": {}})


def test_compiled_modules_make_the_wheel_one_of_a_platform(
    hook: ModuleType, distribution: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTEMIS_PY_MYPYC", "1")
    monkeypatch.setattr(hook, "_compile_to", lambda _root, target: [target / "artemis_py" / "message.so"])
    build: dict[str, Any] = {"force_include": {}}
    _hook_of(hook, distribution).initialize("standard", build)
    assert list(build["force_include"].values()) == ["artemis_py/message.so"]
    assert (build["pure_python"], build["infer_tag"]) == (False, True)
    editable: dict[str, Any] = {"force_include": {}}
    _hook_of(hook, distribution).initialize("editable", editable)
    assert editable == {"force_include": {}}
