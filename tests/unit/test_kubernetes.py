"""The manifests in packaging/kubernetes are valid for Kubernetes' own schemas, and fit each other and the image."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

import kubernetes_validate
import pytest
import yaml

from artemis_py.version import VERSION
from tests.kit.sources import ROOT

FOLDER = ROOT / "packaging" / "kubernetes"
OWN_SCHEMAS = ("v1", "apps/v1")
"""Of Kubernetes itself. Those of ServiceMonitor and ScaledObject come with their operators."""


BY_KIND: dict[str, list[dict[str, Any]]] = {}
for file in sorted(FOLDER.glob("*.yaml")):
    for one in yaml.safe_load_all(file.read_text()):
        BY_KIND.setdefault(one["kind"], []).append(one)
(STATEFUL,), (MONITOR,), (SCALED,) = BY_KIND["StatefulSet"], BY_KIND["ServiceMonitor"], BY_KIND["ScaledObject"]


@pytest.mark.parametrize(
    "document", [*chain(*BY_KIND.values())], ids=lambda one: f"{one['kind']} {one['metadata']['name']}"
)
def test_valid(document: dict[str, Any]) -> None:
    if document["apiVersion"] not in OWN_SCHEMAS:
        assert document["kind"] in ("ServiceMonitor", "ScaledObject")
        pytest.skip(f"{document['kind']}: its schema comes with its operator, not with Kubernetes")
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_a_wrong_word_is_not_valid() -> None:
    document = yaml.safe_load(yaml.safe_dump(STATEFUL))
    document["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_selectors_find_the_pods() -> None:
    labels = STATEFUL["spec"]["template"]["metadata"]["labels"]
    selectors = [service["spec"]["selector"] for service in BY_KIND["Service"]]
    selectors.append(STATEFUL["spec"]["selector"]["matchLabels"])
    assert all(selector == labels for selector in selectors)
    assert STATEFUL["spec"]["serviceName"] in {each["metadata"]["name"] for each in BY_KIND["Service"]}


def test_every_port_has_its_name_in_the_pod() -> None:
    (container,) = STATEFUL["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    exposed = re.search(r"^EXPOSE (.*)$", (ROOT / "packaging" / "Containerfile").read_text(), re.MULTILINE)
    assert exposed is not None
    assert sorted(ports.values()) == sorted(map(int, exposed[1].split()))
    probes = [probe for name, probe in container.items() if name.endswith("Probe")]
    assert {probe["httpGet"]["port"] for probe in probes} <= set(ports)
    for service in BY_KIND["Service"]:
        for port in service["spec"]["ports"]:
            assert ports[port["name"]] == port["port"]


def test_prometheus_finds_the_service() -> None:
    (endpoint,) = MONITOR["spec"]["endpoints"]
    wanted = MONITOR["spec"]["selector"]["matchLabels"]
    found = [each for each in BY_KIND["Service"] if wanted.items() <= each["metadata"].get("labels", {}).items()]
    assert len(found) == 1, "a broker must not be scraped twice"
    assert endpoint["port"] in {port["name"] for port in found[0]["spec"]["ports"]}


def test_the_image_is_the_one_that_is_built() -> None:
    (container,) = STATEFUL["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"artemis-py:{VERSION}"
    user = STATEFUL["spec"]["template"]["spec"]["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}" in (ROOT / "packaging" / "Containerfile").read_text()
    (mount,) = container["volumeMounts"]
    assert f"VOLUME {mount['mountPath']}\n" in (ROOT / "packaging" / "Containerfile").read_text()


def test_variables_are_those_of_the_configuration() -> None:
    (container,) = STATEFUL["spec"]["template"]["spec"]["containers"]
    known = set(re.findall(r"\$\{(\w+)", (ROOT / "packaging" / "container" / "broker.xml").read_text()))
    assert {each["name"] for each in container["env"]} <= known | {"ARTEMIS_PY_NEW_PASSWORD"}


def test_the_scaler_asks_for_a_metric_that_exists() -> None:
    (trigger,) = SCALED["spec"]["triggers"]
    name = re.search(r"artemis_\w+", trigger["metadata"]["query"])
    assert name is not None
    assert f"`{name[0]}" in (ROOT / "docs" / "metrics.md").read_text()
