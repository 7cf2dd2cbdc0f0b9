"""Finds commands of which whoever may create RunRequests chooses a part.

`notes` calls this. Kubernetes writes the value of a parameter into `command` and `args` where these
hold `$(NAME)`; where that text is a line of a shell, a value can end the line and begin another. An
`enum` bounds the values. Not found: a shell that reads the variable without quotes, `eval`, a
variable that refers to the parameter, and what the program makes of a value.
"""

import re
from collections.abc import Iterator

import orjson

from evenkeel.cli.remark import Remark
from evenkeel.model import Schedule
from evenkeel.resource.parameters import CONTAINERS

_POD = ("spec", "jobTemplate", "spec", "template", "spec")


def notes_on_parameters(schedule: Schedule) -> Iterator[Remark]:
    """One note for each text that holds a parameter without an enum."""
    free = [parameter.name for parameter in schedule.parameters if not parameter.choices]
    if not free:
        return
    pod = orjson.loads(schedule.template)["spec"]["template"].get("spec")
    for kind in CONTAINERS:
        containers = pod.get(kind) if isinstance(pod, dict) else None
        for number, container in enumerate(containers if isinstance(containers, list) else ()):
            for field, place, text in _words(container):
                for name in free:
                    if _is_replaced(name, text):
                        yield Remark((*_POD, kind, number, field, place), _sentence(name))


def _words(container: object) -> Iterator[tuple[str, int, str]]:
    if not isinstance(container, dict):
        return
    for field in ("command", "args"):
        words = container.get(field)
        for place, text in enumerate(words if isinstance(words, list) else ()):
            if isinstance(text, str):
                yield field, place, text


def _is_replaced(name: str, text: str) -> bool:
    """`$(NAME)` is replaced; in `$$(NAME)` the first two letters stand for one."""
    return re.search(rf"(?<!\$)(?:\$\$)*\$\({re.escape(name)}\)", text) is not None


def _sentence(name: str) -> str:
    return (
        f"holds $({name}), and the parameter {name} has no enum: whoever may create RunRequests "
        "here chooses this text. Give the parameter an enum, or let the program read the variable "
        f'itself, in a shell as "${name}"'
    )
