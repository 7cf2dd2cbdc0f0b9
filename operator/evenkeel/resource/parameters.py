"""Puts parameters into the environment of each container of a Job template. Pure.

`read` bakes a schedule's own values into its template, so that a changed value is a changed
template, and `render` bakes those that a request gives instead. Init containers get them as well.
Ephemeral containers do not: no template has one. `envFrom` stays as it is: what stands in `env`
wins over it.

What is no list or no object is passed through: the API server says what is wrong with it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evenkeel.model import Parameter, Request

CONTAINERS = ("initContainers", "containers")


def bake(template: dict[str, Any], parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The template with these variables first in each `env`, so that the container's own variables
    can refer to them. A variable of the same name goes."""
    spec = template.get("spec")
    pod = spec.get("template") if isinstance(spec, dict) else None
    inside = pod.get("spec") if isinstance(pod, dict) else None
    if not parameters or not (isinstance(inside, dict) and isinstance(pod, dict)):
        return template
    assert isinstance(spec, dict)
    ours = [{"name": one.name, "value": _literal(one.value)} for one in parameters]
    lists = {
        name: [_with(container, ours) for container in inside[name]]
        for name in CONTAINERS
        if isinstance(inside.get(name), list)
    }
    return {**template, "spec": {**spec, "template": {**pod, "spec": {**inside, **lists}}}}


def given_by(request: Request | None, parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """The schedule's parameters with the values of the request; none where it gives no value, as
    the template holds them already. A name that the schedule does not have is left out."""
    given: Mapping[str, str] = dict(request.parameters) if request is not None else {}
    if not given:
        return ()
    return tuple(
        Parameter(one.name, given.get(one.name, one.value), one.choices) for one in parameters
    )


def _with(container: Any, ours: Sequence[dict[str, str]]) -> Any:
    if not isinstance(container, dict):
        return container
    env = container.get("env")
    if env is not None and not isinstance(env, list):
        return container
    names = [variable["name"] for variable in ours]  # no set: a wrong name may be a list
    others = [
        variable
        for variable in env or ()
        if not (isinstance(variable, dict) and variable.get("name") in names)
    ]
    return {**container, "env": [*ours, *others]}


def _literal(value: str) -> str:
    """Kubernetes would replace `$(SECRET)` by the variable of that name, and so a request could put
    a secret of the schedule where a program prints it. Of `$$` Kubernetes makes one `$`."""
    return value.replace("$", "$$")
