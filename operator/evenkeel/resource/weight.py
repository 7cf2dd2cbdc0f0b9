"""The weight of one run: `placement.weight`, or what the CPU requests of the Job template say.

`read` computes `weight_by_requests` once for each spec; `core.placing` and `evenkeel plan` and
`load` ask `weight_of`. Requests are added up as Kubernetes adds up those of a Pod, without what a
RuntimeClass, a LimitRange or an admission webhook would add.
"""

import re
from collections.abc import Mapping
from typing import Any

from evenkeel.model import Schedule, Weigh

LARGEST_WEIGHT = 1000
QUANTITY_LENGTH_MAX = 64
"""Nobody writes a longer quantity, and Python refuses to read a number of 5,000 digits."""

_QUANTITY = re.compile(
    r"\+?(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,3}))?",
    re.ASCII,
)
_POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWERS_OF_1024 = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}

_TENTH_OF_A_CORE = 10**8
"""In billionths of a core, the smallest part that Kubernetes counts."""


def weight_of(schedule: Schedule, weigh: Weigh) -> int:
    """The load of one run of this schedule, by the setting placement.weigh."""
    if schedule.placement.weight is not None:
        return schedule.placement.weight
    return schedule.weight_by_requests if weigh == "Requests" else 1


def weight_by_requests(template: Mapping[str, Any]) -> int:
    """The CPU that a run of this Job template requests, in tenths of a core, 1 to 1000. A template
    that cannot be added up weighs 1: the API server's dry run tells its owner why."""
    try:
        job = template["spec"]
        tenths = -(-_pod(job["template"]["spec"]) * _parallelism(job) // _TENTH_OF_A_CORE)
    except (TypeError, ValueError, LookupError, AttributeError):
        return 1
    return min(max(1, tenths), LARGEST_WEIGHT)


def _parallelism(job: Mapping[str, Any]) -> int:
    parallelism = job.get("parallelism")
    return 1 if parallelism is None else _whole(parallelism)


def _whole(raw: object) -> int:
    if type(raw) is not int:
        raise ValueError("not a whole number")
    return raw


def _pod(pod: Mapping[str, Any]) -> int:
    """The request of one Pod: of all containers that run together, or of the init container that
    needs most. A sidecar, an init container that is always restarted, runs beside the containers,
    and beside the init containers that come after it."""
    sidecars, largest = 0, 0
    for container in pod.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars += _request(container)
        else:
            largest = max(largest, sidecars + _request(container))
    together = sidecars + sum(_request(container) for container in pod.get("containers") or ())
    return max(together, largest)


def _request(container: Mapping[str, Any]) -> int:
    """Where only a limit is given, Kubernetes makes it the request too."""
    resources = container.get("resources") or {}
    for part in ("requests", "limits"):
        cpu = (resources.get(part) or {}).get("cpu")
        if cpu is not None:
            return billionths(cpu)
    return 0


def billionths(quantity: object) -> int:
    """A quantity such as `100m`, `1`, `0.5` or `2k` as Kubernetes reads it, in billionths, rounded
    up. ValueError for what is no quantity, and for a negative one."""
    if type(quantity) not in (str, int, float):
        raise ValueError("not a quantity")
    text = str(quantity)
    match = _QUANTITY.fullmatch(text) if len(text) <= QUANTITY_LENGTH_MAX else None
    if match is None:
        raise ValueError("not a quantity")
    fraction = match["fraction"] or ""
    number = int(match["whole"] + fraction)  # ValueError where there is no digit at all
    number *= 1024 ** _POWERS_OF_1024.get(match["suffix"], 0)
    power = int(match["exponent"] or _POWERS_OF_TEN.get(match["suffix"], 0)) + 9 - len(fraction)
    return number * 10**power if power >= 0 else int(-(-number // 10**-power))
