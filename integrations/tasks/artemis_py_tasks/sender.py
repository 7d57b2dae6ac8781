"""Tasks to the broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Final, final
from uuid import uuid4

from stompman import Client, FailedAllConnectAttemptsError, FailedAllWriteAttemptsError, SendReceiptError

from artemis_py_tasks.connection import Connection
from artemis_py_tasks.errors import RefusedError, UnconfirmedError, reason_of

TASK_ID: Final = "task-id"
"""The header with what its sender calls a task. One that is tried again may be sent with the same."""
SENT_ID: Final = "_AMQ_DUPL_ID"
"""The header by which the broker knows a message that it has already, and a consumer one that still runs."""
_PAUSE_S: Final = 0.1


@final
class Sender(Connection):
    """Sends tasks. It is no consumer's connection: on one whose sender has to wait, acknowledgements wait, too."""

    async def send(
        self,
        queue: str,
        body: bytes,
        *,
        task_id: str,
        headers: Mapping[str, str],
        priority: int | None = None,
        due: datetime | None = None,
    ) -> None:
        """Send a task; it is on the broker's disk when this returns. ``priority``: 0 to 9, the highest first; the
        broker's default is 4. ``due``: an aware date before which the broker delivers it to nobody.

        Over a connection that breaks it is sent again, with an id by which the broker knows it already. Raises
        RefusedError, UnconfirmedError.
        """
        every = {
            **headers,
            TASK_ID: task_id,
            "destination-type": "ANYCAST",
            "persistent": "true",
            SENT_ID: uuid4().hex,
        }
        if priority is not None:
            every["priority"] = str(priority)
        if due is not None and (due_ms := int(due.timestamp() * 1000)) > time.time() * 1000:
            every["AMQ_SCHEDULED_TIME"] = str(due_ms)
        content_type = every.pop("content-type", None)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self.options.answer_s
        while True:
            client = await self._client_in_time(queue, deadline_s)
            try:
                async with asyncio.timeout_at(deadline_s):
                    await client.send(
                        body,
                        queue,
                        content_type=content_type,
                        headers=every,
                        receipt_timeout=max(deadline_s - loop.time(), 0.001),
                    )
                return
            except SendReceiptError as error:
                if error.reason == "rejected" and error.frame is not None and "receipt-id" in error.frame.headers:
                    raise RefusedError(f"{self.options.names}: {queue}: {reason_of(error.frame)}") from None
                if error.reason == "timeout":
                    raise self._unconfirmed(queue, task_id) from None
            except TimeoutError:
                raise self._unconfirmed(queue, task_id) from None
            except (FailedAllConnectAttemptsError, FailedAllWriteAttemptsError):
                pass
            await asyncio.sleep(_PAUSE_S)  # the connection was lost: again

    async def _client_in_time(self, queue: str, deadline_s: float) -> Client:
        try:
            return await self._client_until(deadline_s)
        except TimeoutError:
            raise UnconfirmedError(
                f"{self.options.names}: nothing was sent to {queue} within {self.options.answer_s:g} s: {self.trouble}"
            ) from None

    def _unconfirmed(self, queue: str, task_id: str) -> UnconfirmedError:
        return UnconfirmedError(
            f"{self.options.names}: {queue}: the broker has not confirmed task {task_id} within "
            f"{self.options.answer_s:g} s; it may have arrived, or the address is full"
        )
