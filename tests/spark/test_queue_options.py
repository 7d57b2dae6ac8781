"""Options of a stream that consumes a queue: what each says, and errors that name what is wrong and what to do."""

from __future__ import annotations

import pytest

from artemis_py.client.endpoint import Endpoint
from artemis_py.errors import PipelineError
from artemis_py.security.client_tls import ClientTls
from artemis_py.spark.read.options import read_options

GIVEN = {"url": "http://a:8161", "stompUrl": "tcp://a:61613", "queue": "jobs"}


def test_every_option_is_taken() -> None:
    options = read_options({**GIVEN, "selector": "n > 5", "maxMessagesPerTrigger": "7"}, streaming=True)
    assert options.queue is not None
    assert options.queue.endpoints == (Endpoint("a", 61613),)
    assert (options.queue.name, options.queue.destination, options.queue.selector) == ("jobs", "::jobs", "n > 5")
    assert options.messages_max == 7
    assert options.tls is None


def test_a_queue_of_an_address() -> None:
    options = read_options({**GIVEN, "queue": "news::reports"}, streaming=True)
    assert options.queue is not None
    assert options.queue.destination == "news::reports"


def test_several_acceptors_of_one_broker_also_with_tls() -> None:
    options = read_options({**GIVEN, "stompUrl": "stomps://a:1, tcp://b:2"}, streaming=True)
    assert options.queue is not None
    assert options.queue.endpoints == (Endpoint("a", 1, "stomps"), Endpoint("b", 2))
    assert options.tls == ClientTls()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"queue": ""}, "option queue is ''; allowed: a queue, to consume it"),
        ({"queue": "news::"}, "option queue is 'news::'; allowed: a queue, to consume it"),
        ({"stompUrl": ""}, "option queue needs option stompUrl: STOMP acceptors of the same broker"),
        ({"stompUrl": "http://a:8161"}, "stompUrl is 'http://a:8161', name a STOMP acceptor: tcp://host:61613"),
        ({"url": "http://a:1,http://b:2"}, "option url must name one broker with option queue"),
        ({"table": "events"}, "option table must be messages with option queue"),
        ({"selector": "n >"}, "option selector is 'n >': "),
        ({"subscribe": "orders"}, "option subscribe has no meaning with option queue: the queue decides"),
        ({"startingOffsets": "earliest"}, "startingOffsets has no meaning with option queue: a new query begins with"),
        ({"minMessagesPerTrigger": "5"}, "minMessagesPerTrigger has no meaning with option queue: a message waits on"),
        ({"maxOffsetsPerTrigger": "5"}, "limit a batch with maxMessagesPerTrigger or maxBytesPerTrigger"),
        ({"skipUnavailableBrokers": "true"}, "skipUnavailableBrokers has no meaning with option queue: a queue is on"),
        ({"cursor": "c"}, "cursor has no meaning with option queue: the queue itself remembers"),
        ({"journal": "/log"}, "the messages are acknowledged at a running broker: give url and stompUrl"),
    ],
)
def test_what_is_wrong_is_told(more: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineError) as refused:
        read_options({**GIVEN, **more}, streaming=True)
    assert said in str(refused.value)


def test_a_batch_cannot_consume() -> None:
    with pytest.raises(PipelineError, match=r"option queue is for spark\.readStream, .*availableNow=True"):
        read_options(GIVEN)


@pytest.mark.parametrize(("name", "value"), [("stompUrl", "tcp://a:61613"), ("selector", "n > 5")])
def test_what_needs_a_queue(name: str, value: str) -> None:
    with pytest.raises(PipelineError, match=f"option {name} is for streams that consume a queue"):
        read_options({"url": "http://a:8161", name: value}, streaming=True)
