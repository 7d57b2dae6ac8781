"""The OpenAPI description of the requests that publish, take and settle messages."""

from __future__ import annotations

from typing import Any, Final

from artemis_py.server.messages.headers import ARGUMENTS, HEADER_ARGUMENT, KEEP_ARGUMENT
from artemis_py.server.messages.take import LEASE_S, LEASE_S_MAX, TIMEOUT_S_MAX

_PROBLEM: Final = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_WRONG: Final = {
    "default": {
        "description": "400: it makes no sense; 401: log in; 403: not allowed; 404: it does not exist; 409: not as "
        "things are; 413: too large; 429: the address or a queue is full; 503: the broker has no room. With 429 and "
        "503, Retry-After says when to try again. Nothing was published or taken.",
        **_PROBLEM,
    }
}
_NOT_KEPT: Final = {
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"error": {"type": "string"}, "routed": {"type": "boolean"}},
                "required": ["error"],
            }
        }
    }
}


def _argument(name: str, sentence: str, place: str = "query", **schema: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "description": sentence,
        "schema": {"type": "string", **schema},
    }


_NAME: Final = _argument("name", "The address to publish to, or the queue to take from; also address::queue.", "path")
_RECEIPT: Final = _argument("receipt", "What the answer with the message had in Artemis-Receipt.", "path")
_MESSAGE: Final = {
    "type": "object",
    "properties": {
        "queue": {"type": "string"},
        "messageID": {"type": "integer"},
        "timestamp": {"type": "integer", "description": "When it was published, in epoch ms."},
        "expiration": {"type": "integer", "description": "In epoch ms; 0: never."},
        "deliveryCount": {"type": "integer"},
        "receipt": {"type": ["string", "null"], "description": "null: it is acknowledged already."},
        "leaseSeconds": {"type": "number"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "body": {"type": "string", "description": "If it is UTF-8."},
        "bodyBase64": {"type": "string", "description": "If it is not."},
    },
    "required": [
        "queue",
        "messageID",
        "timestamp",
        "expiration",
        "deliveryCount",
        "receipt",
        "leaseSeconds",
        "headers",
    ],
    "additionalProperties": False,
}
_SENT: Final = {
    "type": "object",
    "properties": {
        "address": {"type": "string"},
        "routed": {
            "type": "boolean",
            "description": "Did a queue or a divert of the address take it? If not, it is at the dead-letter address.",
        },
        "duplicate": {"type": "boolean", "description": "Was it dropped, because its duplicate id was here before?"},
        "queues": {"type": "integer", "description": "On how many queues it is, with those that diverts lead to."},
        "dropped": {"type": "integer", "description": "How many further queues, full and rings, dropped it at once."},
        "messageID": {"type": "integer", "description": "The number of the message; 0: it was a duplicate."},
        "persistent": {"type": "boolean"},
        "size": {"type": "integer", "description": "Of the body, in bytes."},
    },
    "required": ["address", "routed", "duplicate", "queues", "dropped", "messageID", "persistent", "size"],
    "additionalProperties": False,
}
_REPLY: Final = {
    "type": "object",
    "properties": {"address": {"type": "string"}, "result": {"description": "Of the operation, or null."}},
    "required": ["address", "result"],
    "additionalProperties": False,
}
_DONE: Final = {"204": {"description": "Done, and it survives a crash."}, **_WRONG}

PATHS: Final[dict[str, Any]] = {
    "/api/messages/{name}": {
        "post": {
            "operationId": "publishMessage",
            "summary": "Publish a message. The answer comes when the message survives a crash.",
            "description": "Permission: `send` on the address. The body is the message's. Also at /messages/{name}. "
            "Headers ce-…, X-DEBEZIUM-…, traceparent, tracestate and Content-Type are kept, and Artemis-NAME as NAME.",
            "parameters": [
                _NAME,
                *[_argument(name, f"{sentence}.") for name, (_, sentence) in ARGUMENTS.items()],
                _argument(HEADER_ARGUMENT, "NAME:VALUE, any header of the message; may be repeated."),
                _argument(KEEP_ARGUMENT, "A header of the request that the message keeps; x-github-* for all of them."),
            ],
            "requestBody": {"content": {"*/*": {"schema": {}}}},
            "responses": {
                "200": {
                    "description": "It is on a queue at least, or a repeated message was dropped. At the address of "
                    "management: the operation succeeded.",
                    "content": {"application/json": {"schema": {"oneOf": [_SENT, _REPLY]}}},
                },
                "409": {
                    "description": "No queue took it (routed is false), so it is nowhere; or the operation of a "
                    "management message failed.",
                    **_NOT_KEPT,
                },
                "429": {
                    "description": "The address or a queue is full; also where its policy is DROP, or a ring has "
                    "dropped the message at once (routed is false). Retry-After says when to try again.",
                    **_NOT_KEPT,
                },
                **_WRONG,
            },
        },
    },
    "/api/messages/{name}/take": {
        "post": {
            "operationId": "takeMessage",
            "summary": "Take one message from a queue.",
            "description": "Permission: `consume` on the queue. The body of the answer is the message's. Also at "
            "/messages/{name}/take. With `Accept: application/json` it is JSON, unless the body is a large message.",
            "parameters": [
                _NAME,
                _argument(
                    "timeout", f"How many seconds to wait for a message, at most {TIMEOUT_S_MAX:g}.", default="0"
                ),
                _argument(
                    "lease",
                    f"After how many seconds without a settlement the message goes back, at most {LEASE_S_MAX:g}.",
                    default=f"{LEASE_S:g}",
                ),
                _argument("ack", "auto: it counts as acknowledged when it is sent.", enum=["client", "auto"]),
                _argument("selector", "Take only a message that matches."),
            ],
            "responses": {
                "200": {
                    "description": "The message.",
                    "content": {"application/json": {"schema": _MESSAGE}, "*/*": {"schema": {}}},
                },
                "204": {"description": "There was none in time."},
                **_WRONG,
            },
        },
    },
    "/api/messages/{name}/{receipt}": {
        "delete": {
            "operationId": "acknowledgeMessage",
            "summary": "Acknowledge a message that was taken.",
            "parameters": [_NAME, _RECEIPT],
            "responses": _DONE,
        }
    },
    "/api/messages/{name}/{receipt}/nack": {
        "post": {
            "operationId": "refuseMessage",
            "summary": "Give a message back that was taken. It counts as a failed delivery.",
            "parameters": [_NAME, _RECEIPT],
            "responses": _DONE,
        }
    },
}
"""By path."""
