"""Fixtures for pytest: ``artemis``, a broker for each test, and ``artemis_factory``, for brokers that live longer.

pytest imports this module wherever artemis_py is installed. So it imports nothing of the broker before a test asks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from artemis_py.testing.broker import ArtemisBroker

_INI: Final = "artemis_config"
_MARK: Final = "artemis"
_HELP: Final = (
    "artemis(config=None, queues=None, persistence=False): the broker.xml (a file beside the test or below the root, or"
    " its text), the queues, and whether the broker of the fixture artemis keeps a journal"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``artemis_config`` in pytest.ini: the broker.xml of all tests, below the root."""
    parser.addini(_INI, "the broker.xml of the fixture artemis, relative to this file", default="")


def pytest_configure(config: pytest.Config) -> None:
    """The mark, so that --strict-markers knows it."""
    config.addinivalue_line("markers", _HELP)


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the closest mark says. Raises pytest.UsageError for an unknown argument."""
    mark = request.node.get_closest_marker(_MARK)
    if mark is None:
        return {}
    if mark.args or mark.kwargs.keys() - _parameters():
        wrong = ", ".join([*map(repr, mark.args), *sorted(mark.kwargs.keys() - _parameters())])
        raise pytest.UsageError(
            f"{request.node.nodeid}: the mark artemis takes {', '.join(sorted(_parameters()))} by name, not {wrong}"
        )
    return dict(mark.kwargs)


def _parameters() -> set[str]:
    from artemis_py.testing.broker import ArtemisBroker

    return set(inspect.signature(ArtemisBroker).parameters)


def _with_file(options: dict[str, Any], config: pytest.Config, beside: Path | None) -> dict[str, Any]:
    """The options with the file that counts: the one of the mark, which is beside the test or below the root, else that
    of the ini file.
    """
    named = options.get("config")
    if named is None:
        named = config.getini(_INI)
        beside = config.inipath.parent if config.inipath is not None else None
        if not named:
            return options
    if isinstance(named, str) and named.lstrip().startswith("<"):
        return {**options, "config": named}
    places = [place / named for place in (beside, config.rootpath) if place is not None]
    found = next((place for place in places if place.exists()), None)
    if found is None:
        raise pytest.UsageError(f"the configuration for artemis is not there: {' nor '.join(map(str, places))}")
    return {**options, "config": found}


@pytest.fixture
def artemis(request: pytest.FixtureRequest) -> Iterator[ArtemisBroker]:
    """A broker for this test alone, on a free port, in memory; the mark ``artemis`` changes that."""
    from artemis_py.testing.broker import ArtemisBroker

    options = _with_file(_options(request), request.config, request.path.parent)
    if options.get("persistence") is True:
        options["persistence"] = request.getfixturevalue("tmp_path") / "artemis"
    with ArtemisBroker(**options) as broker:
        yield broker


@pytest.fixture(scope="session")
def artemis_factory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., ArtemisBroker]]:
    """A function that starts brokers, with the arguments of ``ArtemisBroker``; they end with the session."""
    from artemis_py.testing.broker import ArtemisBroker

    with ExitStack() as started:

        def start(**options: Any) -> ArtemisBroker:
            options = _with_file(options, request.config, None)
            if options.get("persistence") is True:
                options["persistence"] = tmp_path_factory.mktemp("artemis")
            return started.enter_context(ArtemisBroker(**options))

        yield start


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what its broker held."""
    report = yield
    broker: Any = getattr(item, "funcargs", {}).get("artemis")
    if report.when == "call" and report.failed and type(broker).__module__ == "artemis_py.testing.broker":
        report.sections.append(("artemis", _story(broker)))
    return report


def _story(broker: ArtemisBroker) -> str:
    try:
        return broker.story
    except Exception as error:  # a report must not fail because the broker is down
        return str(error)
