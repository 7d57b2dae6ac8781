"""Options for the broker of a test (the fixture ``artemis``, of artemis_py)."""

from __future__ import annotations

import pytest
from artemis_py_tasks import Options
from stompman import ConnectionParameters

from artemis_py.testing import ArtemisBroker


@pytest.fixture
def options(artemis: ArtemisBroker) -> Options:
    server = ConnectionParameters(host=artemis.host, port=artemis.port, login="", passcode="")
    return Options(servers=[server], answer_s=10)
