"""The kitchen: what a worker does. `taskiq worker tasks:broker` starts one; order.py sends it work."""

import asyncio
import os

import stompman
from artemis_py_taskiq import StompBroker
from taskiq import SmartRetryMiddleware

host, port = os.environ.get("BROKER", "127.0.0.1:61613").split(":")
server = stompman.ConnectionParameters(host=host, port=int(port), login="", passcode="")
broker = StompBroker(server).with_middlewares(SmartRetryMiddleware(default_delay=1, use_jitter=False))
shelf: list[str] = []


def note(line: str) -> None:
    """Where KITCHEN_LOG is set, a line in that file says what was done."""
    if log := os.environ.get("KITCHEN_LOG"):
        with open(log, "a") as file:
            file.write(f"{line}\n")


@broker.task
async def cook(dish: str, seconds: float = 0.0) -> None:
    """Cook a dish."""
    await asyncio.sleep(seconds)
    note(dish)


@broker.task(retry_on_error=True, max_retries=3)
async def fetch(thing: str) -> None:
    """Fetch something that is not there the first time; the middleware has the task run again a second later."""
    if thing not in shelf:
        shelf.append(thing)
        raise LookupError(f"no {thing} on the shelf")
    note(thing)
