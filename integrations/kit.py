"""For tests of the packages: a coroutine with a deadline, and a broker that makes no queues."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

WAIT_S: Final = 20.0
NO_NEW_QUEUES: Final = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
   <security-enabled>false</security-enabled>
   <acceptors><acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP</acceptor></acceptors>
   <address-settings>
      <address-setting match="#">
         <auto-create-queues>false</auto-create-queues>
         <auto-create-addresses>false</auto-create-addresses>
      </address-setting>
   </address-settings>
</core></configuration>
"""


def in_a_loop(work: Callable[[], Awaitable[None]]) -> None:
    """Runs the test's coroutine, with a deadline."""
    asyncio.run(asyncio.wait_for(work(), WAIT_S))
