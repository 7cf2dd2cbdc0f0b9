"""Finds mistakes of a Job template that no schema knows: rules about values and about several
fields that the API server checks in every Job.

`mistakes` calls `template_rule_mistakes`. These are the rules that people break often: names that
are used twice or are no names, a request above its limit, a mount without a volume. The API server
has more. What has a wrong type is passed over here: `template_mistakes` tells it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evenkeel.manifests.findings import Mistake, Path
from evenkeel.manifests.template_mistakes import one_of
from evenkeel.resource.weight import billionths

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
NOT_NEGATIVE = (
    "activeDeadlineSeconds",
    "backoffLimit",
    "completions",
    "parallelism",
    "ttlSecondsAfterFinished",
)
NAME = (
    "must be at most 63 lowercase letters, digits and hyphens, with a letter or digit at each end"
)
LABEL = (
    "must be at most 63 letters, digits, hyphens, dots and underscores, with a letter or digit at "
    "each end"
)

_NAME = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL = re.compile("([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")

Placed = tuple[Path, Mapping[str, Any]]
"""An object of the template, and where it stands."""


def template_rule_mistakes(template: object, path: Path) -> Iterator[Mistake]:
    """The mistakes of the JobTemplateSpec that stands at `path`."""
    job = _at((path, template), "spec")
    pod_template = _at(job, "template")
    pod = _at(pod_template, "spec")
    for where in ((path, template), pod_template):
        yield from label_mistakes(_at(_at(where, "metadata"), "labels"))
    for name in NOT_NEGATIVE:
        number = job[1].get(name)
        if type(number) is int and number < 0:
            yield Mistake((*job[0], name), "must be at least 0")
    containers = [*_each(pod, "initContainers"), *_each(pod, "containers")]
    volumes = _each(pod, "volumes")
    yield from _used_twice(containers, "name", "container")
    yield from _used_twice(volumes, "name", "volume")
    names = {volume.get("name") for _, volume in volumes}
    for container in containers:
        yield from _container_mistakes(container, names)


def label_mistakes(labels: Placed) -> Iterator[Mistake]:
    """Values that no label can have."""
    path, values = labels
    for name, value in values.items():
        if isinstance(value, str) and _LABEL.fullmatch(value) is None:
            yield Mistake((*path, name), LABEL)


def _container_mistakes(container: Placed, volumes: set[Any]) -> Iterator[Mistake]:
    path, fields = container
    name, policy = fields.get("name"), fields.get("imagePullPolicy")
    if isinstance(name, str) and name and _NAME.fullmatch(name) is None:
        yield Mistake((*path, "name"), NAME)
    if isinstance(policy, str) and policy and policy not in PULL_POLICIES:
        yield Mistake((*path, "imagePullPolicy"), one_of(policy, PULL_POLICIES))
    for at, variable in _each(container, "env"):
        if variable.get("value") and variable.get("valueFrom"):
            yield Mistake((*at, "valueFrom"), "works only without value: remove one of the two")
    for at, mount in _each(container, "volumeMounts"):
        volume = mount.get("name")
        if isinstance(volume, str) and volume not in volumes:
            yield Mistake((*at, "name"), f"{volume[:63]} is not in the Pod's volumes")
    yield from _used_twice(_each(container, "volumeMounts"), "mountPath", "mount")
    yield from _above_limits(_at(container, "resources"))


def _above_limits(resources: Placed) -> Iterator[Mistake]:
    path, requests = _at(resources, "requests")
    limits = _at(resources, "limits")[1]
    for name in requests.keys() & limits.keys():
        try:
            above = billionths(requests[name]) > billionths(limits[name])
        except ValueError:
            continue  # no quantity: the schema's pattern tells it
        if above:
            yield Mistake((*path, name), f"must be at most the limit, {limits[name]}")


def _used_twice(objects: list[Placed], field: str, noun: str) -> Iterator[Mistake]:
    seen: set[str] = set()
    for path, fields in objects:
        value = fields.get(field)
        if not isinstance(value, str):
            continue
        if value in seen:
            yield Mistake((*path, field), f"{value[:63]} is the {field} of another {noun}, too")
        seen.add(value)


def _at(parent: tuple[Path, object], name: str) -> Placed:
    """The object in this field; an empty one if there is none."""
    path, fields = parent
    found = fields.get(name) if isinstance(fields, Mapping) else None
    return (*path, name), found if isinstance(found, Mapping) else {}


def _each(parent: Placed, name: str) -> list[Placed]:
    """The objects of the list in this field."""
    path, fields = parent
    found = fields.get(name)
    items = found if isinstance(found, list) else []
    return [((*path, name, n), each) for n, each in enumerate(items) if isinstance(each, Mapping)]
