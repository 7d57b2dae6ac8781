"""Orders what its arguments say."""

import asyncio
import sys

from app import KEPT, broker


async def main() -> None:
    async with broker:
        for dish in sys.argv[1:]:
            await broker.publish(dish, "/queue/orders", headers=KEPT)


asyncio.run(main())
