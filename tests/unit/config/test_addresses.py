"""Addresses, queues and diverts as they are declared."""

from __future__ import annotations

import pytest

from tests.kit.documents import divert, errors_of, load_core, queue, setting, settings, warnings_of


def test_addresses_with_their_queues_in_the_order_of_the_file() -> None:
    config = load_core(
        """<addresses>
        <address name="both">
          <multicast><queue name="m"/></multicast>
          <anycast><queue name="b"/><queue name="a"/></anycast>
        </address>
        <address name="none"> </address>
        </addresses>"""
    )
    both, none = config.addresses
    assert (both.name, both.routing_types) == ("both", ("MULTICAST", "ANYCAST"))
    assert [(each.name, each.address, each.routing_type) for each in both.queues] == [
        ("m", "both", "MULTICAST"),
        ("b", "both", "ANYCAST"),
        ("a", "both", "ANYCAST"),
    ]
    assert (none.routing_types, none.queues) == ((), ())


def test_attributes_that_are_absent_are_none() -> None:
    (declared,) = load_core(queue()).addresses[0].queues
    assert (declared.durable, declared.filter, declared.ring_size, declared.enabled) == (True, None, None, None)
    assert declared.origin.line == 3


def test_children_of_a_queue_in_any_order() -> None:
    inside = '<user>u</user><durable>false</durable><filter string="a = 1"/>'
    (declared,) = load_core(queue('max-consumers="3"', inside)).addresses[0].queues
    assert (declared.user, declared.durable, declared.filter, declared.max_consumers) == ("u", False, "a = 1", 3)
    assert declared.origin_of("filter").line == 3


def test_the_name_of_a_queue_may_be_a_full_name() -> None:
    config = load_core('<addresses><address name="a"><anycast><queue name="x::y"/></anycast></address></addresses>')
    assert [(each.name, each.address) for each in config.addresses[0].queues] == [("y", "a")]


def test_an_empty_filter_is_none() -> None:
    (declared,) = load_core(queue(inside='<filter string=" "/>')).addresses[0].queues
    assert declared.filter is None


def test_a_queue_name_on_a_second_address_is_left_out_with_a_warning() -> None:
    core = """<addresses>
    <address name="a"><anycast><queue name="q" ring-size="1"/></anycast></address>
    <address name="b"><anycast><queue name="q" ring-size="2"/></anycast></address></addresses>"""
    first, second = load_core(core).addresses
    assert [each.ring_size for each in first.queues] == [1]
    assert second.queues == ()
    (warning,) = warnings_of(core)
    assert warning.startswith("broker.xml:5: queue 'q' is ignored")
    assert "broker.xml:4" in warning


def test_an_address_declared_twice_counts_together() -> None:
    core = """<addresses><address name="a"><anycast/></address>
    <address name="a"><multicast><queue name="q"/></multicast></address></addresses>"""
    (address,) = load_core(core).addresses
    assert address.routing_types == ("ANYCAST", "MULTICAST")
    assert [each.name for each in address.queues] == ["q"]
    assert any("declared again" in warning for warning in warnings_of(core))


@pytest.mark.parametrize(
    "core",
    [
        '<addresses><address name=""><anycast/></address></addresses>',
        '<addresses><address name="a"><anycast><queue name=""/></anycast></address></addresses>',
    ],
)
def test_empty_names_are_refused(core: str) -> None:
    (problem,) = errors_of(core)
    assert problem.message == "name must not be empty"


def test_the_old_element_queues_makes_multicast_queues() -> None:
    core = '<queues><queue name="q"><address>a</address><filter string="b = 1"/></queue><queue name="own"/></queues>'
    config = load_core(core)
    assert [(each.name, each.routing_types) for each in config.addresses] == [
        ("a", ("MULTICAST",)),
        ("own", ("MULTICAST",)),
    ]
    assert config.addresses[0].queues[0].filter == "b = 1"
    assert any("is deprecated" in warning for warning in warnings_of(core))


def test_a_selector_that_does_not_parse_is_refused_with_its_place() -> None:
    (problem,) = errors_of(queue(inside='\n<filter string="color = "/>'))
    assert problem.line == 4
    assert problem.value == "color = "
    assert "filter of queue 'q' is not a valid selector" in problem.message
    assert "column" in problem.message


def test_diverts() -> None:
    inside = """<address>a</address><forwarding-address> b , c,</forwarding-address><routing-name>r</routing-name>
    <exclusive>true</exclusive><routing-type>PASS</routing-type><filter string="x > 1"/>"""
    (made,) = load_core(divert(inside)).diverts
    assert (made.name, made.address, made.forwarding_addresses) == ("d", "a", ("b", "c"))
    assert (made.routing_name, made.exclusive, made.routing_type, made.filter) == ("r", True, "PASS", "x > 1")


def test_defaults_of_a_divert() -> None:
    (made,) = load_core(divert("<address>a</address><forwarding-address>b</forwarding-address>")).diverts
    assert (made.routing_name, made.exclusive, made.routing_type, made.filter) == ("d", False, "STRIP", None)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("<address>a</address><forwarding-address> , </forwarding-address>", "no forwarding-address"),
        ("<address/><forwarding-address>b</forwarding-address>", "no address"),
        (
            '<address>a</address><forwarding-address>b</forwarding-address><filter string="("/>',
            "is not a valid selector",
        ),
        (
            "<address>a</address><forwarding-address>b</forwarding-address><routing-type>ALL</routing-type>",
            "STRIP, PASS",
        ),
    ],
)
def test_diverts_that_are_refused(inside: str, words: str) -> None:
    (problem,) = errors_of(divert(inside))
    assert words in str(problem)


@pytest.mark.parametrize("address", ["a", "{}"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("q::q", "it names a queue"),
        ("activemq.management", "what is sent there is carried out, and not routed"),
        ("$.artemis.internal.x", "it is internal"),
    ],
)
def test_diverts_that_can_never_work_are_refused(address: str, name: str, words: str) -> None:
    target = "b" if address == "{}" else name
    inside = f"<address>{address.format(name)}</address><forwarding-address>{target}</forwarding-address>"
    (problem,) = errors_of(divert(inside))
    assert problem.message == f"divert 'd': {name!r} is not an address that a divert can have: {words}"


DECLARED = '<addresses><address name="b">{}</address></addresses>'


@pytest.mark.parametrize(
    ("address", "target", "more", "words"),
    [
        ("a.#", "b", DECLARED.format("<multicast/>"), "begins at the pattern 'a.#'"),
        ("a", "b.*", "", "forwards to the pattern 'b.*'"),
        ("a", "/queue/b", "", "forwards to the address '/queue/b', and not to 'b'"),
        ("a", "b", "", "forwards to 'b', which has no queue"),
        ("a", "b", DECLARED.format("<multicast/>"), ""),
        ("a", "b", DECLARED.format("<anycast/>"), ""),
        ("a", "b", DECLARED.format('<anycast><queue name="b"/></anycast>'), ""),
        ("a", "b", '<addresses><address name="#"><multicast><queue name="w"/></multicast></address></addresses>', ""),
        ("a", "b", setting("<default-address-routing-type>ANYCAST</default-address-routing-type>"), ""),
        (
            "a", "b",
            DECLARED.format("<anycast/>") + setting("<auto-create-queues>false</auto-create-queues>"),
            "forwards to 'b', which has no queue",
        ),
    ],
)  # fmt: skip
def test_diverts_that_may_not_be_meant_are_warned_of(address: str, target: str, more: str, words: str) -> None:
    inside = f"<address>{address}</address><forwarding-address>{target}</forwarding-address>"
    found = [warning for warning in warnings_of(divert(inside) + more) if "divert 'd'" in warning]
    assert len(found) == bool(words)
    assert all(words in warning for warning in found)


def test_an_empty_match_is_refused() -> None:
    (problem,) = errors_of(setting("<max-size-messages>5</max-size-messages>", match=""))
    assert "the match is empty, and covers no address; '#' covers all of them" in problem.message


def test_two_diverts_of_one_name_are_refused() -> None:
    body = "<address>a</address><forwarding-address>b</forwarding-address>"
    (problem,) = errors_of(f'<diverts><divert name="d">{body}</divert>\n<divert name="d">{body}</divert></diverts>')
    assert problem.line == 4
    assert "broker.xml:3" in problem.message


def test_a_transformer_is_ignored_with_its_reason() -> None:
    inside = "<address>a</address><forwarding-address>b</forwarding-address>"
    core = divert(inside + "<transformer><class-name>x</class-name></transformer>")
    assert any("transformer is ignored: Java classes" in warning for warning in warnings_of(core))


DROP, LIMIT = "<address-full-policy>DROP</address-full-policy>", "<max-size-bytes>1M</max-size-bytes>"
FULL = {
    "a policy without a limit": (settings(("#", DROP)), True),
    "a limit in bytes": (settings(("#", DROP + LIMIT)), False),
    "a limit in messages": (settings(("#", DROP + "<max-size-messages>1</max-size-messages>")), False),
    "a limit further out": (settings(("#", LIMIT), ("a", DROP)), False),
    "a limit further in": (settings(("#", DROP), ("a", LIMIT)), False),
    "a limit somewhere else": (settings(("a", DROP), ("b", LIMIT)), True),
}


@pytest.mark.parametrize(("core", "warned"), FULL.values(), ids=FULL)
def test_a_full_policy_without_a_limit_is_warned_of(core: str, warned: bool) -> None:
    assert any("is full only when global-max-size" in warning for warning in warnings_of(core)) is warned


PAGE = "<address-full-policy>PAGE</address-full-policy>"
RINGS = {
    "a ring on a paging address": (setting(PAGE) + queue('ring-size="5"'), True),
    "a ring on an address with a limit": (
        setting("<max-size-bytes>1M</max-size-bytes>") + queue('ring-size="5"'),
        True,
    ),
    "a ring by default": (setting(PAGE + "<default-ring-size>5</default-ring-size>") + queue(), True),
    "a queue that is no ring": (setting(PAGE) + queue('ring-size="-1"'), False),
    "a ring on an address without limit": (queue('ring-size="5"'), False),
    "a ring on an address that drops": (
        setting("<max-size-bytes>1M</max-size-bytes><address-full-policy>DROP</address-full-policy>")
        + queue('ring-size="5"'),
        False,
    ),
}


@pytest.mark.parametrize(("core", "warned"), RINGS.values(), ids=RINGS)
def test_a_ring_on_a_paging_address_is_advised_against(core: str, warned: bool) -> None:
    assert any("do not count towards the ring" in warning for warning in warnings_of(core)) is warned


@pytest.mark.parametrize(
    "core", [queue('ring-size="0"'), setting("<default-ring-size>0</default-ring-size>")], ids=["declared", "default"]
)
def test_a_ring_that_keeps_nothing_is_warned_of(core: str) -> None:
    (warning,) = warnings_of(core)
    assert "a ring of size 0 and keeps no message" in warning


NOWHERE = "<dead-letter-address>DLQ</dead-letter-address>"
READ = '<addresses><address name="{}"><anycast><queue name="d"/></anycast></address></addresses>'
CREATES = "<auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>"


@pytest.mark.parametrize(
    ("core", "warned"),
    [
        (setting(NOWHERE), True),
        (setting(NOWHERE) + '<addresses><address name="DLQ"><anycast/></address></addresses>', True),
        (queue('dead-letter-address="DLQ"'), True),
        (setting("<expiry-address>DLQ</expiry-address>"), True),
        (setting("<dead-letter-address></dead-letter-address>"), False),
        (setting(NOWHERE + CREATES), False),
        (setting(CREATES) + queue('dead-letter-address="DLQ"'), False),
        (setting(NOWHERE) + READ.format("DLQ"), False),
        (setting(NOWHERE) + READ.format("#"), False),
        (setting(NOWHERE) + """<diverts><divert name="d"><address>DLQ</address>
         <forwarding-address>x</forwarding-address></divert></diverts>""", False),
    ],
)  # fmt: skip
def test_a_dead_letter_address_without_a_queue_is_warned_of(core: str, warned: bool) -> None:
    """A message that dies makes the address and no queue: it would be lost."""
    found = [warning for warning in warnings_of(core) if "messages sent there are lost" in warning]
    assert len(found) == warned


def test_an_address_without_a_queue_is_warned_of_once() -> None:
    twice = setting(NOWHERE, match="a") + setting(NOWHERE, match="b") + queue('dead-letter-address="DLQ"')
    core = twice.replace("</address-settings><address-settings>", "")
    assert len([warning for warning in warnings_of(core) if "messages sent there are lost" in warning]) == 1


def test_no_route_without_a_dead_letter_address_is_warned_of() -> None:
    no_route = "<send-to-dla-on-no-route>true</send-to-dla-on-no-route>"
    assert any("send-to-dla-on-no-route without" in warning for warning in warnings_of(setting(no_route)))
    assert not any("send-to-dla-on-no-route" in warning for warning in warnings_of(setting(no_route + NOWHERE)))


def test_wildcard_characters() -> None:
    config = load_core(
        "<wildcard-addresses><routing-enabled>false</routing-enabled><delimiter>/</delimiter>"
        "<any-words>></any-words><single-word>?</single-word></wildcard-addresses>"
        + setting("<max-delivery-attempts>3</max-delivery-attempts>", match="a/>")
    )
    syntax = config.wildcards
    assert (syntax.routing_enabled, syntax.delimiter, syntax.any_words, syntax.single_word) == (False, "/", ">", "?")
    assert config.settings_for("a/b").max_delivery_attempts == 3
    assert config.settings_for("a.b").max_delivery_attempts == 10


def test_the_old_name_of_routing_enabled_gives_way() -> None:
    both = "<routing-enabled>true</routing-enabled><enabled>false</enabled>"
    assert load_core(f"<wildcard-addresses>{both}</wildcard-addresses>").wildcards.routing_enabled is True
    turned = "<enabled>false</enabled><routing-enabled>true</routing-enabled>"
    assert load_core(f"<wildcard-addresses>{turned}</wildcard-addresses>").wildcards.routing_enabled is True
    alone = "<enabled>false</enabled>"
    assert load_core(f"<wildcard-addresses>{alone}</wildcard-addresses>").wildcards.routing_enabled is False


@pytest.mark.parametrize(
    ("inside", "refused"),
    [
        ("<delimiter>::</delimiter>", False),
        ("<delimiter></delimiter>", True),
        ("<delimiter>#</delimiter>", True),
        ("<any-words>*</any-words>", True),
    ],
)
def test_wildcard_characters_that_are_wrong(inside: str, refused: bool) -> None:
    core = f"<wildcard-addresses>{inside}</wildcard-addresses>"
    assert bool(errors_of(core)) is refused
    assert refused or any("only the first character of" in warning for warning in warnings_of(core))
