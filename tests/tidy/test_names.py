"""Nobody is told to install what an index calls by our name; the rule is also shown bad examples."""

from __future__ import annotations

import tomllib

import pytest

from tests.kit.sources import ROOT, shown, text_files
from tests.tidy.names import DISTRIBUTION, told_from_an_index

_RULE = {"tests/tidy/names.py", "tests/tidy/test_names.py"}


def test_no_text_installs_from_an_index() -> None:
    # pyproject's extra test takes in others: pip finds those at home
    own = f'"{DISTRIBUTION}[delta,jwt,ldap,otel,spark,uvloop]",'
    texts = [path for path in text_files() if shown(path) not in _RULE]
    found = [one for path in texts for one in told_from_an_index(shown(path), path.read_text("utf-8"))]
    assert [one for one in found if not (one.startswith("pyproject.toml:") and one.endswith(f": {own}"))] == []


def test_the_distribution_has_a_name_of_its_own() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    assert f"{DISTRIBUTION}[delta,jwt,ldap,otel,spark,test-fast,uvloop]" in project["optional-dependencies"]["test"]


@pytest.mark.parametrize(
    "line",
    [
        "pip install artemis_py",
        "pip install -U artemis-py",
        ".venv/bin/python -m pip install --upgrade 'artemis_py>=0.2'",
        "run: pip install 'artemis_py[spark]'",
        "uv pip install Artemis.Py",
        "uv add artemis_py",
        "pip install artemis-py-broker",
        "uvx artemis-py test-broker",
        "uvx --from artemis-py-broker artemis-py test-broker",
        'dependencies = ["artemis_py[spark]"]',
    ],
)
def test_an_installation_by_name_is_found(line: str) -> None:
    assert told_from_an_index("README.md", f"first\n{line}\n") == [f"README.md:2: {line}"]


@pytest.mark.parametrize(
    "line",
    [
        "pip install '.[spark]'",
        "pip install /path/to/artemis_py",
        "pip install 'artemis_py_broker-0.1.0-py3-none-any.whl[spark]'",
        "pip uninstall artemis_py",
        "uvx --from ./artemis_py_broker-0.1.0-py3-none-any.whl artemis-py test-broker",
        ".venv/bin/python -m pip install stomp.py, then import artemis_py.spark",
        "import artemis_py.spark",
    ],
)
def test_an_installation_from_files_is_none(line: str) -> None:
    assert told_from_an_index("README.md", line) == []
