"""Makes the pictures of the console in docs/pictures anew, of two brokers with 5,000 queues:
``python -m tests.e2e.console.pictures``. It takes some minutes, until there are curves to show.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from PIL import Image

from tests.e2e.console.screen import Screen
from tests.kit.browser import Browser, chromium
from tests.kit.client import StompSocket, connected
from tests.kit.process import (
    HTTP,
    STOMP,
    SWEPT,
    BrokerProcess,
    configuration,
    eventually,
    retained,
    running,
)

FOLDER: Final = Path(__file__).parents[3] / "docs" / "pictures"
MOMENTS: Final = 24
"""The broker notes one every ten seconds."""
PAST_S: Final = 600.0
QUEUES: Final = 5000
SETTINGS: Final = """
      <address-setting match="#">
        <dead-letter-address>DLQ</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts>
      </address-setting>
"""
QUEUE: Final = '<address name="{0}"><anycast><queue name="{0}"{1}/></anycast></address>'
OWN: Final = {
    "orders": "", "invoices": "", "mail": "", "audit": "", "stock": "", "payments": "", "reports": "", "DLQ": "",
    "shipping": ' max-depth-messages="6000" overflow-policy="REJECT"', "prices": ' ring-size="50"',
}  # fmt: skip
"""The queues of a shop: a small one that will be full, and a ring."""
MANY: Final = {f"svc.{number % 40:02}.q{number:04}": "" for number in range(QUEUES)}
ADDRESSES: Final = "".join(QUEUE.format(name, more) for name, more in {**OWN, **MANY}.items())
ORDER: Final = {
    "order": 4711, "customer": "c-17", "currency": "EUR",
    "items": [{"sku": "A-1", "count": 2, "price": 19.9}, {"sku": "B-7", "count": 1, "price": 5.0}],
}  # fmt: skip


ACCEPTORS: Final = {"stomp": STOMP + ";connectionsAllowed=1000", "http": HTTP}


@contextmanager
def traffic(port: int, over: threading.Event) -> Iterator[None]:
    """Clients of a shop, until it is over: one consumer is too slow, one refuses, and some queues have none."""

    def publish() -> None:
        with connected(port, client_id="shop") as client:
            for number in range(1_000_000):
                for name, every in (("orders", 2), ("stock", 1), ("mail", 2), ("shipping", 3), ("prices", 1)):
                    if number % every == 0:
                        body = json.dumps({**ORDER, "order": number}).encode()
                        more = {"persistent": "true", "content-type": "application/json", "region": "eu"}
                        client.send("SEND", {"destination": f"/queue/{name}", **more}, body)
                if over.wait(0.02):
                    return

    def consume(name: str, pause_s: float) -> None:
        with connected(port, client_id=f"{name}-worker") as client:
            client.subscribe(f"/queue/{name}")
            while not over.wait(pause_s):
                client.send("ACK", {"id": client.message().header("ack")})

    work = [threading.Thread(target=publish, daemon=True)]
    work += [
        threading.Thread(target=consume, args=one, daemon=True)
        for one in (("orders", 0.0), ("stock", 0.0), ("mail", 0.06))
    ]
    for thread in work:
        thread.start()
    try:
        yield
    finally:
        over.set()  # a consumer may wait for a message that never comes: it ends with the process
        work[0].join()


def fill(client: StompSocket) -> None:
    """Messages that wait, that have died, and that are sent regularly."""
    for number in range(300):
        for _ in range(1 + number % 9):
            client.send("SEND", {"destination": f"/queue/svc.{number % 40:02}.q{number:04}"}, b"{}")
    for number in range(120):
        client.send("SEND", {"destination": "/queue/invoices", "persistent": "true"}, b"invoice %d" % number)
    for hour in (6, 12, 18):
        cron = {"AMQ_SCHEDULED_CRON": f"0 {hour} * * MON-FRI", "persistent": "true"}
        client.send("SEND", {"destination": "/queue/reports", **cron}, b"make the report")
    client.subscribe("/queue/payments")
    for number in range(25):
        more = {"persistent": "true", "content-type": "application/json"}
        client.ask("SEND", {"destination": "/queue/payments", **more}, b'{"payment": %d, "amount": 19.9}' % number)
        client.send("NACK", {"id": client.message().header("ack")})
    client.ask("SEND", {"destination": "/queue/audit"}, b"seen")


DRAWN: Final = """
    const seen = (it) => (it.points ?? []).filter((one) => one.at > performance.timeOrigin).length;
    const charts = [...document.querySelectorAll(".chart")];
    return document.fonts.status === "loaded" && document.querySelector(".row.waiting, [data-state=asking]") === null
        && charts.every((it) => it.querySelector("canvas") !== null && seen(it) > 2);
"""
"""Is everything there, and has the page measured rates itself, so that curves go up to now?"""


def take(screen: Screen, name: str, place: str, *texts: str) -> None:
    """A picture of a page, once these texts are on it."""
    screen.open(place)
    screen.sees(*texts)
    screen.until("curves", DRAWN)
    file = FOLDER / f"console-{name}.png"
    screen.browser.picture(file, 900)
    picture = Image.open(file).convert("RGB")
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=3).save(file, optimize=True)  # a third of the size


def take_all(browser: Browser, first: BrokerProcess, second: BrokerProcess) -> None:
    browser.size(1440, 900, "light")
    screen = Screen(browser, first)
    dead = first.ask("GET", "/api/queues/DLQ/messages?fields=messageID,originalMessageID").json["data"][0]
    order = first.ask("GET", "/api/queues/shipping/messages?fields=messageID").json["data"][0]
    take(screen, "overview", "/", "Need attention")
    take(screen, "queue", "/queues/mail", "Why does it grow?")
    take(screen, "queues", "/queues", "queues")
    take(screen, "life", f"/life/{dead['originalMessageID']}", "still there")
    take(screen, "message", f"/queues/shipping/messages/{order['messageID']}", "Why is it here?")
    screen.run(f"localStorage.setItem('artemis-brokers', '{second.url}')")
    take(screen, "brokers", "/", "shop-asia")


def main() -> None:
    """Makes them."""
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder) / "one", Path(folder) / "two"
        one.mkdir()
        two.mkdir()
        core = SWEPT + retained(one)
        text = configuration(
            ACCEPTORS, folder=one, name="shop-europe", core=core, addresses=ADDRESSES, settings=SETTINGS
        )
        with running(text, one) as first:
            small = configuration(
                {**ACCEPTORS, "http": f"{HTTP};allowedOrigins={first.url}"},
                name="shop-asia",
                addresses=QUEUE.format("orders", ""),
            )
            with running(small, two) as second, connected(first.port) as client, traffic(first.port, threading.Event()):
                fill(client)
                with connected(second.port) as other:
                    other.ask("SEND", {"destination": "/queue/orders"}, b"{}")
                history = "/api/queues/mail/history"
                eventually(
                    "curves",
                    lambda: first.ask("GET", history).json["data"],
                    lambda past: len(past) >= MOMENTS,
                    PAST_S,
                )
                with chromium(Path(folder)) as browser:
                    take_all(browser, first, second)


if __name__ == "__main__":
    main()
