"""What a worker does. ``manage.py artemis_worker`` starts one; ``manage.py order`` sends it work."""

import asyncio
import os
import time

from django.tasks import TaskContext, task


@task
def cook(dish: str, seconds: float = 0.0) -> str:
    """Cook a dish. Where KITCHEN_LOG is set, a line in that file says so."""
    time.sleep(seconds)
    if log := os.environ.get("KITCHEN_LOG"):
        with open(log, "a") as file:
            file.write(f"{dish}\n")
    return f"{dish} is ready"


@task(queue_name="drinks", priority=50)
async def pour(drink: str) -> str:
    """Pour a drink."""
    await asyncio.sleep(0)
    return f"{drink} is poured"


@task(takes_context=True)
def fetch(context: TaskContext, thing: str) -> str:
    """Fetch something that is not there the first time: the broker has the task run again a second later."""
    if context.attempt == 1:
        raise LookupError(f"no {thing} on the shelf")
    return f"{thing}, at the second attempt"
