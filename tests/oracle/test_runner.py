"""The runner itself: a step whose expectation is wrong fails, and says what it saw."""

from __future__ import annotations

import pytest

from tests.oracle import xml_parts as xml
from tests.oracle.brokers import BrokerUnderTest
from tests.oracle.configuration import Profile
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    Answer,
    Connect,
    Counts,
    Either,
    Exists,
    Nothing,
    Refused,
    Request,
    Routed,
    Silent,
    StaysOpen,
    Step,
    anycast,
    begin,
    commit,
    messages,
    perform,
    subscribe,
)
from tests.oracle.values import ABSENT, AfterSend, Contains

pytestmark = pytest.mark.e2e

QUEUE = Scenario("runner", "a queue to be wrong about", (), addresses=(xml.anycast("runner"),))
PROFILE = Profile("runner", -1, (QUEUE,))

NOT_CONNECTED = (anycast("runner", "m"),)
READ = (Connect(), anycast("runner", "m"), subscribe("runner"))
DOOMED = (Connect("c", "1.2"), Request("COMMIT", {"transaction": "t"}))

WRONG: dict[str, tuple[tuple[Step, ...], str]] = {
    "not connected": (NOT_CONNECTED, "c has not connected"),
    "another version": ((Connect(answer={"version": "1.1"}),), "header version should be 1.1, not '1.2'"),
    "another message": ((*READ, messages("n")), "'n' should come next, not 'm'"),
    "another in any order": ((*READ, messages("n", "o", in_order=False)), "'n' should come next, not 'm'"),
    "another header": ((*READ, messages("m", headers={"priority": "5"})), "header priority should be 5, not '4'"),
    "a header too many": ((*READ, messages("m", headers={"priority": ABSENT})), "header priority should be"),
    "another part": ((*READ, messages("m", headers={"ack": Contains("?")})), "header ack should be"),
    "another time": ((*READ, messages("m", headers={"timestamp": AfterSend(5000)})), "header timestamp should be"),
    "a message after all": ((*READ, Nothing()), "nothing should come: MESSAGE"),
    "a frame after all": ((*READ, Silent()), "nothing should come: MESSAGE"),
    "refused": (DOOMED, "refused: ERROR"),
    "accepted": ((Connect(), Refused(begin(), closes=True)), "accepted: RECEIPT"),
    "closed after all": ((Connect(), Refused(commit(), closes=False)), "the connection is closed"),
    "open after all": ((Connect("c", "1.1"), Refused(commit(), closes=True)), "the connection stays open"),
    "no receipt": ((Connect(), Refused(commit(), closes=True, has_receipt=False)), "receipt-id is wrong"),
    "another answer": ((Connect(), Request("BEGIN", {"transaction": "t"}), Answer("ERROR")), "timed out"),
    "ended": ((Connect(), Refused(commit(), closes=True), StaysOpen()), "step 3"),
    "another count": ((Connect(), anycast("runner", "m"), Counts("runner", messages=99)), "expected {'messages': 99}"),
    "no such queue": ((Counts("nowhere", 0),), "there is no queue nowhere"),
    "a queue after all": ((Exists("runner", yes=False),), "still False after"),
    "another route": ((Routed("runner", routed=-1),), "still False after"),
    "inside either": ((Either(ours=(Counts("nowhere", 0),), artemis=()),), "there is no queue nowhere"),
}


@pytest.mark.parametrize("ours", [pytest.param(PROFILE, id="runner")], indirect=True, scope="session")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_expectation_fails(ours: BrokerUnderTest, name: str) -> None:
    steps, complaint = WRONG[name]
    with pytest.raises(AssertionError) as failure:
        perform(steps, ours, wait_s=0.2)
    assert complaint in str(failure.value)
