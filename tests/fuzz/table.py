"""Every fuzzer, by name."""

from __future__ import annotations

from typing import Final

from tests.fuzz.broker_xml import BROKER_XML
from tests.fuzz.frames import FRAMES
from tests.fuzz.fuzzing import Fuzzer
from tests.fuzz.http_requests import HTTP_REQUESTS
from tests.fuzz.login_config import LOGIN_CONFIG
from tests.fuzz.selectors import SELECTORS
from tests.fuzz.sessions import SESSIONS
from tests.fuzz.user_files import USER_FILES
from tests.fuzz.websocket_frames import WEBSOCKET

_ALL: Final = (FRAMES, SESSIONS, SELECTORS, BROKER_XML, HTTP_REQUESTS, WEBSOCKET, LOGIN_CONFIG, USER_FILES)
FUZZERS: Final[dict[str, Fuzzer]] = {fuzzer.name: fuzzer for fuzzer in _ALL}
