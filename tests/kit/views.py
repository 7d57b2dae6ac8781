"""Views for tests, as XML."""

from __future__ import annotations

EU_US = "underlying-address='orders.eu,orders.us.#' default-publish-target='orders.eu'"
ONE = "underlying-address='orders.eu'"


def view(attributes: str = EU_US, name: str = "work", inside: str = "") -> str:
    """An address with a view."""
    return f"<address name='{name}'><anycast><queue name='{name}' {attributes}>{inside}</queue></anycast></address>"


def addresses(*declared: str, settings: str = "", match: str = "#") -> str:
    """XML below ``core``."""
    of_address = f"<address-settings><address-setting match='{match}'>{settings}</address-setting></address-settings>"
    return f"<addresses>{''.join(declared)}</addresses>{of_address if settings else ''}"


EU = "<address name='orders.eu'><multicast/></address>"
DESK = "<address name='orders.eu'><anycast><queue name='desk'/></anycast></address>"
