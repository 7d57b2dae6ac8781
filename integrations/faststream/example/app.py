"""The kitchen: `faststream run app:app` starts it; order.py sends it work."""

import os

import faststream
import faststream_stomp
import stompman

host, port = os.environ.get("BROKER", "127.0.0.1:61613").split(":")
client = stompman.Client(
    [stompman.ConnectionParameters(host=host, port=int(port), login="", passcode="")],
    heartbeat=stompman.Heartbeat(10_000, 10_000),  # a handler may block the event loop for some seconds
    keep_alive_on_connection_failure=True,  # a broker that is away for a minute comes back
    no_message_restart_interval=None,  # a quiet hour is no reason to connect again
)
broker = faststream_stomp.StompBroker(client, receipt_timeout=10)  # what is published is on the broker's disk
app = faststream.FastStream(broker)
KEPT = {"persistent": "true"}


@broker.subscriber("/queue/orders", headers={"prefetch-count": "10"})
async def cook(dish: str) -> None:
    """Cook a dish. The order is acknowledged when this has returned; if it raises, the order comes again."""
    if log := os.environ.get("KITCHEN_LOG"):
        with open(log, "a") as file:
            file.write(f"{dish}\n")
    await broker.publish(f"{dish} is ready", "/queue/meals", headers=KEPT)
