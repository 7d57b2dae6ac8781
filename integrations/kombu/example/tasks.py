"""The kitchen: what a worker does. `celery -A tasks worker` starts one; order.py sends it work."""

import os
import time

from celery import Celery

app = Celery(
    "kitchen",
    broker=os.environ.get("BROKER_URL", "stomp://127.0.0.1:61613//"),
    backend="rpc://",  # results come back over the broker, too
)
app.conf.update(
    task_acks_late=True,  # a task is done when it has run, so it survives the worker and the broker
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


@app.task
def cook(dish: str, seconds: float = 0.0) -> str:
    """Cook a dish. Where KITCHEN_LOG is set, a line in that file says so."""
    time.sleep(seconds)
    if log := os.environ.get("KITCHEN_LOG"):
        with open(log, "a") as file:
            file.write(f"{dish}\n")
    return f"{dish} is ready"


@app.task(bind=True, max_retries=3)
def fetch(self, shelf: list[str]) -> str:
    """Take what is on the shelf; an empty one is looked at again a second later."""
    if not shelf:
        raise self.retry(args=[["milk"]], countdown=1)
    return shelf[0]
