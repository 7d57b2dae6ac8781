"""What a refused reload is refused for, and where."""

from __future__ import annotations

from artemis_py.config.settings import AcceptorConfig
from artemis_py.config.tables.declarations import Origin
from artemis_py.errors import ConfigError, Problem
from artemis_py.server.configuration.reading import problems_of, warnings_of
from artemis_py.server.tls.context import TlsError

_ERROR = Problem("error", "broker.xml", 7, "wrong")
_WARNING = Problem("warning", "broker.xml", 3, "a loop", code="circle")
_NOTE = Problem("note", "broker.xml", 1, "for your information")


def test_a_warning_beside_an_error_is_no_cause() -> None:
    error = ConfigError([_NOTE, _WARNING, _ERROR])
    assert (problems_of(error), warnings_of(error)) == ([_ERROR], [_WARNING])


def test_where_warnings_count_they_are_the_cause() -> None:
    error = ConfigError([_NOTE, _WARNING])
    assert (problems_of(error), warnings_of(error)) == ([_WARNING], [_WARNING])


def test_what_is_wrong_with_tls_has_its_place_once() -> None:
    acceptor = AcceptorConfig(name="secure", host="127.0.0.1", port=1, origin=Origin("broker.xml", 10))
    (problem,) = problems_of(TlsError(acceptor, "no such file"))
    assert (problem.place, problem.message) == ("broker.xml:10", "acceptor secure cannot speak TLS: no such file")
