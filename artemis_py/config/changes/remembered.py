"""What becomes of the queues that the journal remembers, where the file says something else of them.

A start and a reload decide by it, and ``check`` and ``diff`` tell it beforehand. Nothing durable goes because a file
was changed: only ``config-delete-queues`` and ``config-delete-addresses`` delete messages, a ring or a last-value
queue replaces those for which it has no room, and what is too old for its queue expires.
"""

from __future__ import annotations

from typing import Final

from artemis_py.config.settings import BrokerConfig, QueueConfig
from artemis_py.config.tables.queue_settings import QueueSettings
from artemis_py.shown import many

FORCE: Final = "FORCE"


def stays_because(config: QueueConfig, address: str, messages: int, *, durable: bool) -> str | None:
    """Why a queue with so many messages, which is on ``address``, does not become what ``config`` declares; None if a
    start makes it so. ``durable``: is it durable now?
    """
    moves = address != config.address
    if not messages or not (moves or (durable and not config.durable)):
        return None
    stays = f"stays on address {address}" if moves else "stays durable"
    why = "a queue does not move" if moves else "a queue that is not durable loses its messages at each restart"
    return (
        f"it {stays}, with its {many(messages, 'message')}: {why}. Consume them, or move them elsewhere (artemis-py "
        f"queue move {config.name} TARGET); then delete the queue (artemis-py queue delete {config.name}), and a "
        f"reload makes it on address {config.address}, as it is declared"
    )


def replaced_because(own: QueueSettings, replaced: int, messages: int) -> str:
    """What a start says of messages of a queue for which it had no room. ``messages``: how many it had before."""
    if own.last_value_key is not None:
        why = f"of those with the same {own.last_value_key} only the last one counts"
    elif own.policy == "RING" and own.limits_depth:
        why = "overflow-policy is RING, and they are more than max-depth-messages or max-depth-bytes"
    else:
        why = "they are more than its ring-size"
    gives = "gives" if replaced == 1 else "give"
    return f"{replaced:,} of its {many(messages, 'message')} {gives} way at the start: {why}"


def expired_because(own: QueueSettings, expired: int, in_pages: int, messages: int) -> str:
    """What a start says of messages that are too old for their queue. ``in_pages``: how many were not checked.
    ``messages``: how many there are in all.
    """
    times = (("max-message-ttl", own.max_message_ttl), ("expiration", own.expiration))
    limits = " and ".join(f"{name} {time_ms} ms" for name, time_ms in times if time_ms > 0)
    told = []
    if expired:
        expire = "is too old and expires" if expired == 1 else "are too old and expire"
        told.append(f"{expired:,} of its {many(messages, 'message')} {expire} after the start")
    if in_pages:
        told.append(f"{many(in_pages, 'message')} in pages, not looked at yet, will expire if too old")
    return f"{'; '.join(told)}: it has {limits}"


def is_forced(config: BrokerConfig, address: str) -> str | None:
    """The setting with which a queue on this address is deleted with its messages, if it was declared there before and
    the file does not declare it there any more; None if it stays.
    """
    settings = config.settings_for(address)
    if settings.config_delete_queues == FORCE:
        return "config-delete-queues"
    if settings.config_delete_addresses != FORCE or any(each.address == address for each in config.diverts):
        return None
    is_declared = any(each.name == address for each in config.addresses)
    return None if is_declared else "config-delete-addresses"
