"""Values that are wrong: helm refuses them in one sentence, before anything is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chart.generate import SET_BY_THE_CHART
from tests.chart.rendered import Json, complaints, refusal, render
from tests.cluster.harness.helm import Helm

from evenkeel.errors import BadSetting
from evenkeel.settings import Settings, load

LONG = "n" * 300
NAME = "is not a name: write up to 63 of a-z, 0-9 and -, and no - at its ends"
ADDRESS = "the chart sets the address, which its probes and Service need: see listenHost"
PASSWORD = (
    "store.url holds a password, which everybody who may read the Deployment would see: keep the "
    "URL in a Secret, and name the Secret in store.existingSecret"
)

HOSTILE: dict[str, tuple[Json, str]] = {
    # keys
    "an unknown value": (
        {"replicas": 2},
        "at '': additional properties 'replicas' not allowed",
    ),
    "a slip in a part": (
        {"image": {"repo": "x"}},
        "at '/image': additional properties 'repo' not allowed",
    ),
    "an unknown setting": (
        {"config": {"preShedule": 3}},
        "at '/config': additional properties 'preShedule' not allowed",
    ),
    "the setting's name in a variable": (
        {"config": {"pre_schedule": 3}},
        "at '/config': additional properties 'pre_schedule' not allowed",
    ),
    "an unknown part of a setting": (
        {"config": {"placement": {"mod": "Observe"}}},
        "at '/config/placement': additional properties 'mod' not allowed",
    ),
    "an unknown part of a variable": (
        {"extraEnv": [{"name": "A", "text": "b"}]},
        "at '/extraEnv/0': additional properties 'text' not allowed",
    ),
    "a variable without a name": (
        {"extraEnv": [{"value": "b"}]},
        "at '/extraEnv/0': missing property 'name'",
    ),
    "a part that YAML reads as null": ({"image": None}, "at '': missing property 'image'"),
    # types
    "a number for a tag": ({"image": {"tag": 1.0}}, "at '/image/tag': got number, want string"),
    "a word for a switch": (
        {"crds": {"enabled": "no"}},
        "at '/crds/enabled': got string, want boolean",
    ),
    "one namespace without brackets": (
        {"namespaces": "shop"},
        "at '/namespaces': got string, want array",
    ),
    "a number for a namespace": (
        {"namespaces": [7]},
        "at '/namespaces/0': got number, want string",
    ),
    "a number for a label": (
        {"podLabels": {"example.com/tier": 1}},
        "at '/podLabels/example.com~1tier': got number, want string",
    ),
    "a name for a Secret": (
        {"imagePullSecrets": ["registry"]},
        "at '/imagePullSecrets/0': got string, want object",
    ),
    "a number for a variable": (
        {"extraEnv": [{"name": "A", "value": 1}]},
        "at '/extraEnv/0/value': got number, want string",
    ),
    "a mapping for a list": (
        {"tolerations": {"key": "a"}},
        "at '/tolerations': got object, want array",
    ),
    "text for a mapping": ({"config": "grace: 3"}, "at '/config': got string, want object"),
    "a number for an object": (
        {"extraObjects": [1]},
        "at '/extraObjects/0': got number, want string or object",
    ),
    "half a second": (
        {"terminationGracePeriodSeconds": 0.5},
        "at '/terminationGracePeriodSeconds': got number, want integer",
    ),
    "a named port": (
        {"networkPolicy": {"apiServerPorts": ["https"]}},
        "at '/networkPolicy/apiServerPorts/0': got string, want integer",
    ),
    # values
    "another address": (
        {"listenHost": "127.0.0.1"},
        "at '/listenHost': value must be one of '0.0.0.0', '[::]'",
    ),
    "another log": (
        {"logFormat": "logfmt"},
        "at '/logFormat': value must be one of 'json', 'text', 'auto'",
    ),
    "another way to pull": (
        {"image": {"pullPolicy": "always"}},
        "at '/image/pullPolicy': value must be one of 'IfNotPresent', 'Always', 'Never'",
    ),
    "no image": (
        {"image": {"repository": ""}},
        "at '/image/repository': minLength: got 0, want 1",
    ),
    "a port beyond all ports": (
        {"networkPolicy": {"apiServerPorts": [65536]}},
        "at '/networkPolicy/apiServerPorts/0': maximum: got 65,536, want 65,535",
    ),
    "no port of the API server": (
        {"networkPolicy": {"apiServerPorts": []}},
        "at '/networkPolicy/apiServerPorts': minItems: got 0, want 1",
    ),
    "a probe every 0 seconds": (
        {"livenessProbe": {"periodSeconds": 0}},
        "at '/livenessProbe/periodSeconds': minimum: got 0, want 1",
    ),
    "a digest that is none": (
        {"image": {"digest": "sha256:12"}},
        'image.digest: "sha256:12" is not a digest: write sha256: and 64 digits of 0-9 and a-f',
    ),
    "no duration": (
        {"serviceMonitor": {"interval": "30"}},
        'serviceMonitor.interval: "30" is not a duration: write a number and a unit, such as 30s',
    ),
    # names
    "a name of 300 characters": (
        {"fullnameOverride": LONG},
        "at '/fullnameOverride': maxLength: got 300, want 63",
    ),
    "a name in capitals": ({"fullnameOverride": "Cron"}, f'fullnameOverride: "Cron" {NAME}'),
    "a name that ends in a dash": ({"nameOverride": "cron-"}, f'nameOverride: "cron-" {NAME}'),
    "a name that begins with a digit": (
        {"fullnameOverride": "1st"},
        'the name "1st" begins with a digit, which the name of a Service may not: set '
        "fullnameOverride",
    ),
    "a path for a namespace": (
        {"namespaces": ["a/b"]},
        'namespaces: "a/b" is not the name of a namespace',
    ),
    "no namespace at all": ({"namespaces": [""]}, 'namespaces: "" is not the name of a namespace'),
    "a namespace of 300 characters": (
        {"namespaces": [LONG]},
        f'namespaces: "{LONG}" is not the name of a namespace',
    ),
    "a namespace of two lines": (
        {"namespaces": ["shop\n- --verbose"]},
        r'namespaces: "shop\n- --verbose" is not the name of a namespace',
    ),
    "a namespace twice": (
        {"namespaces": ["shop", "shop"]},
        "at '/namespaces': items at 0 and 1 are equal",
    ),
    "no ServiceAccount": (
        {"serviceAccount": {"create": False}},
        "serviceAccount.name: name the ServiceAccount that is there, or let the chart create one "
        "(serviceAccount.create)",
    ),
    # what the chart sets
    "namespaces as a setting": (
        {"config": {"namespaces": ["shop"]}},
        "config.namespaces: write the chart's own value namespaces instead: the chart makes a Role "
        "in each of them",
    ),
    "the address as a setting": (
        {"config": {"listen": "0.0.0.0:80"}},
        f"config.listen: {ADDRESS}",
    ),
    "the health address as a setting": (
        {"config": {"healthListen": "0.0.0.0:80"}},
        f"config.healthListen: {ADDRESS}",
    ),
    "namespaces as a variable": (
        {"extraEnv": [{"name": "EVENKEEL_NAMESPACES", "value": "shop"}]},
        "extraEnv: write the chart's own value namespaces instead of EVENKEEL_NAMESPACES: the "
        "chart makes a Role in each of them",
    ),
    "the address as a variable": (
        {"extraEnv": [{"name": "EVENKEEL_HEALTH_LISTEN", "value": "0.0.0.0:80"}]},
        "extraEnv: EVENKEEL_HEALTH_LISTEN is set by the chart, whose probes and Service need it: "
        "see listenHost",
    ),
    "a store as a variable": (
        {"extraEnv": [{"name": "EVENKEEL_STORE_URL", "value": "none"}]},
        "extraEnv: write the chart's own value store.url instead of EVENKEEL_STORE_URL: the chart "
        "makes the volume, and chooses how an update goes",
    ),
    "the store as a setting": (
        {"config": {"store": {"url": "none"}}},
        "config.store.url: write the chart's own value store.url instead: the chart makes the "
        "volume, and chooses how an update goes",
    ),
    "the data directory as a setting": (
        {"config": {"data": "/srv"}},
        "config.data: the chart mounts the data directory, and says where it is: see "
        "store.persistence",
    ),
    # the store
    "a path for a store": (
        {"store": {"url": "/srv/evenkeel.db"}},
        'store.url: "" is not a store: write sqlite:///path/to/file.db, '
        "postgresql://user@host/database, or none",
    ),
    "another kind of store": (
        {"store": {"url": "mysql://evenkeel:secret@db/evenkeel"}},
        'store.url: "mysql:" is not a store: write sqlite:///path/to/file.db, '
        "postgresql://user@host/database, or none",
    ),
    "a password for everybody": ({"store": {"url": "postgresql://a:secret@db/b"}}, PASSWORD),
    "a password among the options": (
        {"store": {"url": "postgresql://a@db/b?ssl=true&password=secret"}},
        PASSWORD,
    ),
    "a Secret without a key": (
        {"store": {"existingSecret": {"name": "a", "key": ""}}},
        "at '/store/existingSecret/key': minLength: got 0, want 1",
    ),
    "a size in words": (
        {"store": {"persistence": {"size": "2 GB"}}},
        'store.persistence.size: "2 GB" is not a quantity: write a number and a unit, such as 2Gi',
    ),
    "a volume that is only read": (
        {"store": {"persistence": {"accessModes": ["ReadOnlyMany"]}}},
        "at '/store/persistence/accessModes/0': value must be one of 'ReadWriteOnce', "
        "'ReadWriteOncePod', 'ReadWriteMany'",
    ),
    # two settings together
    "a rebuild after the index has run dry": (
        {"config": {"indexRebuild": 700}},
        "config.indexRebuild (700) must be below config.lookahead (600): the index would be empty "
        "before it is rebuilt",
    ),
    "a span that does not fit the index": (
        {"config": {"lookahead": 64800, "grace": 201}},
        "config.lookahead (64800) and config.grace (201) must not exceed 65000 together: the "
        "index holds a due time as a number of seconds in 16 bits",
    ),
}


@pytest.mark.parametrize(("values", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_wrong_is_refused_in_one_sentence(helm: Helm, values: Json, sentence: str) -> None:
    assert refusal(helm, values) == sentence


def test_two_settings_that_just_go_together_are_taken(helm: Helm, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    for config in ({"lookahead": 64800, "grace": 200}, {"lookahead": 61, "indexRebuild": 60}):
        rendered = render(helm, {"config": config})
        file.write_text(rendered.one("ConfigMap")["data"]["config.yaml"])
        assert load(file=file, environment={})


def test_a_release_that_begins_with_a_digit_needs_a_name_of_its_own(helm: Helm) -> None:
    assert refusal(helm, {}, release="1st") == (
        'the name "1st-evenkeel" begins with a digit, which the name of a Service may not: set '
        "fullnameOverride"
    )
    assert render(helm, {"fullnameOverride": "first"}, release="1st").one("Deployment")


def test_each_mistake_has_a_line_of_its_own(helm: Helm) -> None:
    assert set(complaints(helm, {"fooo": 1, "verbose": "yes"})) == {
        "at '': additional properties 'fooo' not allowed",
        "at '/verbose': got string, want boolean",
    }


def settings() -> dict[str, tuple[str, Any]]:
    """For each setting values about its bounds, its default, and text."""
    found: dict[str, tuple[str, Any]] = {}
    for name, described in Settings.model_json_schema(by_alias=True)["properties"].items():
        if name in SET_BY_THE_CHART:
            continue
        values = ["text", described["default"]]
        for limit in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if limit in described:
                values += [described[limit] - 1, described[limit], described[limit] + 1]
        if described["type"] == "integer":
            values.append(described["default"] + 0.5)
        found |= {f"{name}: {value}": (name, value) for value in values}
    return found


@pytest.mark.parametrize(("name", "value"), settings().values(), ids=settings())
def test_the_chart_takes_exactly_the_settings_that_the_operator_takes(
    helm: Helm, tmp_path: Path, name: str, value: object
) -> None:
    outer, _, inner = name.partition(".")
    config = {outer: {inner: value} if inner else value}
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))

    try:
        expected = load(file=file, environment={})
    except BadSetting:
        assert refusal(helm, {"config": config})
    else:
        rendered = render(helm, {"config": config, "crds": {"enabled": False}})
        file.write_text(rendered.one("ConfigMap")["data"]["config.yaml"])
        assert load(file=file, environment={}) == expected
