"""What a run weighs: the field, or the CPU that the Pods of its Job request."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.resource.cases import Json, scheduled_job, spec

from evenkeel.model import Schedule
from evenkeel.resource.read import read
from evenkeel.resource.weight import billionths, weight_by_requests, weight_of

QUANTITIES: dict[str | int | float, Fraction] = {
    "100m": Fraction(1, 10),
    "1": Fraction(1),
    "0.5": Fraction(1, 2),
    "2k": Fraction(2000),
    "1.5": Fraction(3, 2),
    ".5": Fraction(1, 2),
    "2.": Fraction(2),
    "+3": Fraction(3),
    "007": Fraction(7),
    "0": Fraction(0),
    "1500m": Fraction(3, 2),
    "0.5m": Fraction(1, 2000),
    "250u": Fraction(1, 4000),
    "1n": Fraction(1, 10**9),
    "1Ki": Fraction(1024),
    "0.5Mi": Fraction(1024**2, 2),
    "1M": Fraction(10**6),
    "1E": Fraction(10**18),
    "1E3": Fraction(1000),
    "1e3": Fraction(1000),
    "5e-1": Fraction(1, 2),
    "1e+2": Fraction(100),
    "0.1n": Fraction(1, 10**9),  # rounded up to the smallest part
    1: Fraction(1),
    0.25: Fraction(1, 4),
    1e-05: Fraction(1, 10**5),
}

NO_QUANTITIES = {
    *("", " ", "m", ".", "+", "-1", "-100m", "1 ", " 1", "1K", "1ki", "1mm", "1_000", "0x1", "1,5"),
    *("one", "nan", "inf", "1e", "1e9999999", "\u0661", "9" * 65),
}


@pytest.mark.parametrize(("written", "cores"), QUANTITIES.items(), ids=map(str, QUANTITIES))
def test_a_quantity_is_read_as_kubernetes_reads_it(written: str | float, cores: Fraction) -> None:
    assert billionths(written) == cores * 10**9


@pytest.mark.parametrize("written", [*sorted(NO_QUANTITIES), None, True, [], {}, float("nan")])
def test_what_is_no_quantity_is_no_quantity(written: object) -> None:
    with pytest.raises(ValueError, match=r"quantity|invalid literal"):
        billionths(written)


@given(st.integers(0, 10**9), st.sampled_from(["", "m", "u", "n", "k"]))
def test_a_quantity_is_exact(number: int, suffix: str) -> None:
    part = {"": 1, "m": Fraction(1, 1000), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9)}
    assert billionths(f"{number}{suffix}") == number * part.get(suffix, 1000) * 10**9


# --- templates ------------------------------------------------------------------------------------


def requests(cpu: Any) -> Json:
    return {"resources": {"requests": {"cpu": cpu}}}


def limits(cpu: Any) -> Json:
    return {"resources": {"limits": {"cpu": cpu}}}


def sidecar(cpu: Any) -> Json:
    return {"restartPolicy": "Always", **requests(cpu)}


def template(*containers: Any, init: Any = (), **job: Any) -> Json:
    pod = {"containers": list(containers), "initContainers": list(init)}
    return {"spec": {**job, "template": {"spec": pod}}}


WEIGHTS = {
    "nothing requested": (template({}), 1),
    "no containers": (template(), 1),
    "a tenth of a core": (template(requests("100m")), 1),
    "a little more than a tenth": (template(requests("101m")), 2),
    "a core": (template(requests(1)), 10),
    "memory alone": (template({"resources": {"requests": {"memory": "1Gi"}}}), 1),
    "the sum over containers": (template(requests("1"), requests("500m")), 15),
    "the sum is rounded, not its parts": (template(*[requests("10m")] * 3), 1),
    "a limit alone": (template(limits("2")), 20),
    "a limit beside a request": (
        template({"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}}),
        10,
    ),
    "a limit of another resource": (
        template({"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}),
        10,
    ),
    "no resources": (template({"resources": None}), 1),
    "no requests": (template({"resources": {"requests": None, "limits": {"cpu": "1"}}}), 10),
    "a request of null": (template({"resources": {"requests": {"cpu": None}}}), 1),
    "a large init container": (template(requests("1"), init=[requests("3")]), 30),
    "a small init container": (template(requests("1"), init=[requests("500m")]), 10),
    "the largest of several": (template(init=[requests("1"), requests("2")]), 20),
    "a sidecar": (template(requests("1"), init=[sidecar("500m")]), 15),
    "an init container after a sidecar": (
        template(requests("1"), init=[sidecar("1"), requests("2")]),
        30,
    ),
    "an init container before a sidecar": (
        template(requests("1"), init=[requests("2"), sidecar("1")]),
        20,
    ),
    "pods side by side": (template(requests("250m"), parallelism=4), 10),
    "an unset parallelism": (template(requests("1"), parallelism=None), 10),
    "no pods": (template(requests("1"), parallelism=0), 1),
    "as much as there is": (template(requests("8"), parallelism=1000), 1000),
    "a request of the largest size": (template(requests("9E")), 1000),
}

NONSENSE = {
    "a word": template(requests("lots")),
    "a word beside a number": template(requests("4"), requests("lots")),
    "a negative quantity": template(requests("-4")),
    "a list": template(requests(["4"])),
    "a switch": template(requests(True)),
    "a parallelism in words": template(requests("4"), parallelism="two"),
    "a negative parallelism": template(requests("4"), parallelism=-2),
    "containers that are none": template("main", requests("4")),
    "resources that are none": template({"resources": "large"}),
    "no pod": {"spec": {"template": {}}},
    "nothing": {},
}


@pytest.mark.parametrize(("given", "weight"), WEIGHTS.values(), ids=WEIGHTS)
def test_requests_weigh(given: Json, weight: int) -> None:
    assert weight_by_requests(given) == weight


@pytest.mark.parametrize("given", NONSENSE.values(), ids=NONSENSE)
def test_what_cannot_be_added_up_weighs_one(given: Json) -> None:
    assert weight_by_requests(given) == 1


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["cpu", "requests", "resources", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(JUNK, max_size=2), JUNK, JUNK)
def test_no_template_makes_it_raise(containers: list[Any], init: Any, parallelism: Any) -> None:
    pod = {"containers": containers, "initContainers": init}
    job = {"parallelism": parallelism, "template": {"spec": pod}}
    assert 1 <= weight_by_requests({"spec": job}) <= 1000


# --- which of them counts -------------------------------------------------------------------------


def seen(**fields: Any) -> Schedule:
    template = {"spec": {"template": {"spec": {"containers": [{"name": "x", **requests("2")}]}}}}
    found = read(scheduled_job(spec(schedule="@daily", jobTemplate=template, **fields)))
    assert isinstance(found, Schedule), found
    return found


def test_the_field_comes_first() -> None:
    given = seen(placement={"weight": 7})
    assert (weight_of(given, "Runs"), weight_of(given, "Requests")) == (7, 7)


def test_without_the_field_the_setting_says_what_counts() -> None:
    for one in (seen(), seen(placement={}), seen(placement={"weight": None})):
        assert one.placement.weight is None
        assert (weight_of(one, "Runs"), weight_of(one, "Requests")) == (1, 20)
