"""Answers requests of Jolokia one after the other, in steps, each with its own error; carries out ``exec``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from artemis_py.core.tasks import Step
from artemis_py.errors import BrokerError, NotAllowedError
from artemis_py.management.artemis.beans import Bean, Beans
from artemis_py.management.artemis.java_errors import JavaError, failed, illegal, no_attribute, no_instance
from artemis_py.management.artemis.operations import changes, find_operation, without_secrets
from artemis_py.management.artemis.results import compact_json
from artemis_py.management.jolokia.read import read
from artemis_py.management.jolokia.request import EXEC, LIST, READ, SEARCH, WRITE, JolokiaRequest, Options
from artemis_py.management.jolokia.search_and_list import list_beans, search
from artemis_py.management.jolokia.values import inner, json_pieces
from artemis_py.management.operation import EDIT, Guard
from artemis_py.version import VERSION as OUR_VERSION

Steps = Generator[Step, None, Any]
Note = Callable[[str, Mapping[str, Any], str, bool], None]
"""Tells the audit log of a change: id, arguments, result, and whether it was not permitted."""
AGENT: Final = "2.2.8"
PROTOCOL: Final = "8.0"
"""The versions of Jolokia whose protocol this is: tools choose by them what they ask for."""
BULK_MAX: Final = 1_000
"""So many requests may stand in one body."""
_BY_GET: Final = (
    "{} changes something, and GET may not: a picture on any web page sends one, with the login that the browser "
    "remembers; send the same as JSON with POST"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A value, or a problem; ``request`` is None if it could not be read."""

    request: JolokiaRequest | None
    value: Any = None
    problem: JavaError | None = None

    def pieces(self, timestamp_s: int) -> Iterator[str]:
        """The answer as JSON, in pieces."""
        request, problem = self.request, self.problem
        options = Options() if request is None else request.options
        head = {"request": request.echo()} if request is not None and options.has_request else {}
        if problem is not None:
            error = {"error_type": problem.type, "error": f"{problem.type} : {problem}", "status": problem.status}
            yield compact_json({**head, **error, "timestamp": timestamp_s})
            return
        begin = compact_json(head)[:-1]
        yield f'{begin}{"," if head else ""}"value":'
        yield from json_pieces(self.value, options)
        yield f',"status":200,"timestamp":{timestamp_s}}}'


class Agent:
    """Answers for one broker."""

    def __init__(self, beans: Beans) -> None:
        self._beans = beans

    def run(self, requests: Sequence[JolokiaRequest | JavaError], guard: Guard, note: Note) -> Steps:
        """The answers, in the order of the requests; one that could not be read is its problem."""
        answers: list[Answer] = []
        for request in requests:
            if isinstance(request, JavaError):
                answers.append(Answer(None, problem=request))
                continue
            echoed = self._without_secrets(request)
            try:
                value = yield from self._value(request, guard, note)
                answers.append(Answer(echoed, value))
            except JavaError as error:
                answers.append(Answer(echoed, problem=error))
            except BrokerError as error:
                answers.append(Answer(echoed, problem=failed(error)))
            yield None
        return answers

    def changes(self, requests: Sequence[JolokiaRequest | JavaError]) -> bool:
        """May one of the requests change something?"""
        return any(self._changes(request) for request in requests if isinstance(request, JolokiaRequest))

    def _changes(self, request: JolokiaRequest) -> bool:
        if request.type != EXEC or request.name.is_pattern:
            return False
        bean = self._beans.one(request.name)
        return bean is not None and changes(bean.kind, request.operation)

    def _without_secrets(self, request: JolokiaRequest) -> JolokiaRequest:
        """What an answer repeats of a request."""
        bean = self._beans.one(request.name) if request.type == EXEC and not request.name.is_pattern else None
        if bean is None or not request.arguments:
            return request
        return replace(request, arguments=without_secrets(bean.kind, request.operation, request.arguments))

    def _value(self, request: JolokiaRequest, guard: Guard, note: Note) -> Steps:
        if request.type == READ:
            return (yield from read(self._beans, guard, request))
        if request.type == EXEC:
            return (yield from self._execute(request, guard, note))
        if request.type == SEARCH:
            return (yield from search(self._beans, guard, request))
        if request.type == LIST:
            return (yield from list_beans(self._beans, guard, request))
        if request.type == WRITE:
            return self._write(request)
        return _version()

    def _one(self, request: JolokiaRequest) -> Bean:
        bean = None if request.name.is_pattern else self._beans.one(request.name)
        if bean is None:
            raise no_instance(request.name.canonical)
        return bean

    def _execute(self, request: JolokiaRequest, guard: Guard, note: Note) -> Steps:
        bean = self._one(request)
        arguments = request.arguments or ()
        operation = find_operation(bean.kind, request.operation, request.name.canonical, len(arguments))
        if request.is_url and operation.secrets:
            raise illegal(f"{operation.signature.name} takes a password, which has no place in a URL; use POST")
        call = operation.prepare(self._beans.managed, bean, arguments)
        if call.right != EDIT:
            guard.demand(call.right, call.permission)
            return inner((yield from call.begin()).value, request.path)
        if request.is_url:
            raise JavaError(403, "java.lang.SecurityException", _BY_GET.format(operation.signature.name))
        logged = {name: value for name, value in call.arguments.items() if value is not None}
        try:
            guard.demand(call.right, call.permission)
            done = yield from call.begin()
        except Exception as error:
            note(call.id, logged, str(error), isinstance(error, NotAllowedError))
            raise
        note(call.id, logged, done.outcome, False)
        return inner(done.value, request.path)

    def _write(self, request: JolokiaRequest) -> None:
        bean = self._one(request)
        name = request.attributes[0] if request.attributes else ""
        word = "Read-only" if name in bean.kind.attributes else "No such"
        raise no_attribute(f"{word} attribute: {name}")


def _version() -> dict[str, Any]:
    return {
        "agent": AGENT,
        "protocol": PROTOCOL,
        "details": {"agent_version": AGENT, "agent_id": "artemis_py", "secured": False},
        "id": "artemis_py",
        "config": {"agentId": "artemis_py"},
        "info": {"product": "artemis_py", "vendor": "artemis_py", "version": OUR_VERSION, "proxy": {}, "jmx": {}},
    }
