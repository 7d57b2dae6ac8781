"""Which roles may do what: read and resolved."""

from __future__ import annotations

from tests.kit.documents import load_core, warnings_of
from tests.kit.permitted import setting


def settings(*inside: str) -> str:
    return "<security-settings>\n" + "\n".join(inside) + "\n</security-settings>"


def test_the_most_specific_match_decides_alone() -> None:
    security = load_core(settings(setting("#", send="all", consume="all"), setting("a.*", send="some"))).security
    assert security.roles_for("a.b", "send") == ("some",)
    assert security.roles_for("a.b", "consume") == ()
    assert security.roles_for("x", "consume") == ("all",)
    assert load_core("").security.setting_for("x") is None
    assert load_core("").security.roles_for("x", "send") == ()


def test_a_full_name_counts_before_everything_else_but_only_for_its_queue() -> None:
    security = load_core(
        settings(setting("a", send="x"), setting("a::q", send="y"), setting("a::#", send="z"))
    ).security
    assert security.roles_for("a::q", "send") == ("y",)
    assert security.roles_for("a::other", "send") == ("x",)
    assert security.roles_for("a", "send") == ("x",)


def test_of_two_with_the_same_match_the_last_counts() -> None:
    core = settings(setting("a", send="x", consume="x"), setting("a", send="y"))
    assert load_core(core).security.roles_for("a", "send") == ("y",)
    assert load_core(core).security.roles_for("a", "consume") == ()
    assert any("replaces the one at broker.xml:4" in warning for warning in warnings_of(core))


def test_roles_are_trimmed_and_old_names_of_permissions_known() -> None:
    security = load_core(settings(setting("a", send=" x , y,", createTempQueue="t"))).security
    assert security.roles_for("a", "send") == ("x", "y")
    assert security.roles_for("a", "createNonDurableQueue") == ("t",)


def test_an_unknown_permission_is_left_out_with_the_nearest_name() -> None:
    core = settings(setting("a", Send="x", consume="y"))
    assert load_core(core).security.roles_for("a", "consume") == ("y",)
    (warning,) = warnings_of(core)
    assert "unknown permission is ignored; found 'Send'" in warning
    assert warning.endswith("did you mean 'send'?")


def test_role_mappings_add_roles_from_outside() -> None:
    mapping = '<role-mapping from="cn=admins" to="admin, owner"/>'
    security = load_core(settings(setting("a", send="admin, guest", consume="owner"), mapping)).security
    assert security.roles_for("a", "send") == ("admin", "cn=admins", "guest")
    assert security.roles_for("a", "consume") == ("owner", "cn=admins")
    assert security.role_mappings == {"admin": ("cn=admins",), "owner": ("cn=admins",)}


def test_literal_markers_do_not_apply() -> None:
    core = "<literal-match-markers>()</literal-match-markers>" + settings(setting("(a)", send="x"))
    security = load_core(core).security
    assert security.roles_for("a", "send") == ()
    assert security.roles_for("(a)", "send") == ("x",)


def test_a_uuid_is_looked_up_below_its_namespace() -> None:
    uuid = "8d3e2b1c-0000-4000-8000-0123456789ab"
    core = "<uuid-namespace>temp</uuid-namespace>" + settings(setting("temp.*", send="x"))
    assert load_core(core).security.roles_for(uuid, "send") == ("x",)


def test_a_plug_in_is_ignored_with_its_reason() -> None:
    core = settings('<security-setting-plugin class-name="x"/>')
    assert any("security-setting-plugin is ignored" in warning for warning in warnings_of(core))
