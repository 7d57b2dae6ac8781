"""Publishes messages for Artemis' beans, as somebody who is named there, or as whoever may use the operation."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.tasks import Step
from artemis_py.errors import NotAllowedError
from artemis_py.management.managed import Steps
from artemis_py.security.identity import Credentials
from artemis_py.server.gate import SecurityGate
from artemis_py.server.messages.publish import Posting
from artemis_py.server.ports import Ports
from artemis_py.server.turns import Turns
from artemis_py.stomp.service import StompService, Traffic
from artemis_py.stomp.session.state import SessionState

_CLIENT_ID = "management"


@final
class Sending:
    """The ``Send`` of a broker. Without a ``gate`` nobody has to log in."""

    def __init__(self, turns: Turns, ports: Ports, gate: SecurityGate | None) -> None:
        self._turns = turns
        self._gate = gate
        plain = AcceptorConfig(name=_CLIENT_ID, host="", port=0)
        authorizer = None if gate is None else gate.authorizer
        self._service = StompService(
            turns.broker, plain, Traffic(), ports.temporaries, turns.large, authorizer=authorizer
        )

    def __call__(
        self, user: str | None, password: str | None, headers: list[tuple[str, str]], parts: Sequence[bytes]
    ) -> Steps:
        """See ``Send``."""
        state = SessionState(self._service, self._turns.next_origin(), None)
        state.user, state.client_id = user, _CLIENT_ID
        if user is not None and self._gate is not None:
            yield from self._log_in(state, self._gate, Credentials(user, password))
        sent: Mapping[str, Any] = yield from Posting(state, lambda: self._turns.isolation.turn_ms).steps(headers, parts)
        return sent

    def _log_in(self, state: SessionState, gate: SecurityGate, credentials: Credentials) -> Generator[Step, None, None]:
        """Raises NotAllowedError."""
        login = gate.desk.begin(credentials, self._turns.schedule)
        if not login.may_go_on:
            yield login
        if login.identity is None:
            raise NotAllowedError(login.refusal)
        state.user, state.identity = login.identity.user, login.identity
        state.rights = gate.authorizer.rights_of(login.identity)
