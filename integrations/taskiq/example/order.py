"""Orders three things."""

import asyncio

from tasks import broker, cook, fetch


async def main() -> None:
    await broker.startup()
    await cook.kiq("soup")
    await cook.kicker().with_labels(delay=2, priority=9).kiq("toast")  # the broker keeps it for two seconds
    await fetch.kiq("milk")
    await broker.shutdown()


asyncio.run(main())
