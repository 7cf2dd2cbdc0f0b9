"""What the Pods of a Job tell: whether one has started, why not, and why one failed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.model import Cause
from evenkeel.resource.pods import MESSAGE_BYTES, clean, look


def pod(phase="Pending", *, states=(), inits=(), conditions=(), **status):
    return {
        "metadata": {"name": "report-abc"},
        "status": {
            "phase": phase,
            "initContainerStatuses": [named("init", state) for state in inits],
            "containerStatuses": [named("work", state) for state in states],
            "conditions": list(conditions),
            **status,
        },
    }


def named(name, state):
    last = state.pop("last", None)
    found = {"name": name, "image": "busybox:9.99", "state": state}
    return found | ({"lastState": last} if last else {})


def waiting(reason, message=""):
    return {"waiting": {"reason": reason, "message": message}}


def ended(code, reason="Error", at="2026-03-02T10:01:00Z", message=""):
    words = {"message": message} if message else {}
    return {"terminated": {"exitCode": code, "reason": reason, "finishedAt": at, **words}}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient cpu.",
}
NOT_FOUND = (
    'Back-off pulling image "busybox:9.99": ErrImagePull: rpc error: code = NotFound desc = '
    "failed to pull and unpack image: docker.io/library/busybox:9.99: not found"
)

NOT_STARTED = {
    "no Pod at all": ([], ("pending", "no Pod was created")),
    "nobody has touched it": ([pod()], ("pending", "Pod report-abc is Pending")),
    "no node takes it": (
        [pod(conditions=[UNSCHEDULABLE])],
        ("unschedulable", "0/3 nodes are available: 3 Insufficient cpu."),
    ),
    "its image does not exist": (
        [pod(states=[waiting("ImagePullBackOff", NOT_FOUND)])],
        ("image", "image busybox:9.99 not found"),
    ),
    "its image cannot be pulled": (
        [pod(states=[waiting("ImagePullBackOff", "no such host")])],
        ("image", "image busybox:9.99: no such host"),
    ),
    "its image is not to be had": (
        [pod(states=[waiting("ErrImagePull")])],
        ("image", "image busybox:9.99: ErrImagePull"),
    ),
    "its volume is not there yet": (
        [pod(states=[waiting("ContainerCreating")])],
        ("pending", "Pod report-abc is Pending"),
    ),
    "its Secret is missing": (
        [pod(states=[waiting("CreateContainerConfigError", 'secret "x" not found')])],
        ("pending", 'container work: CreateContainerConfigError: secret "x" not found'),
    ),
    "an empty status": ([{"metadata": {"name": "x"}}], ("pending", "Pod x is Pending")),
}


@pytest.mark.parametrize(("pods", "why"), NOT_STARTED.values(), ids=NOT_STARTED)
def test_why_no_pod_has_started(pods, why):
    seen = look(pods)
    assert (seen.started, seen.reason, seen.message) == (False, *why)


STARTED = {
    "it runs": [pod("Running", states=[{"running": {}}])],
    "it has run": [pod("Succeeded", states=[ended(0)])],
    "its init container runs": [pod(inits=[{"running": {}}])],
    "one of two runs": [pod(), pod("Running", states=[{"running": {}}])],
    "it is to begin again": [
        pod("Running", states=[waiting("CrashLoopBackOff") | {"last": ended(1)}])
    ],
}


@pytest.mark.parametrize("pods", STARTED.values(), ids=STARTED)
def test_a_pod_has_started(pods):
    assert look(pods).started
    assert look(pods).reason is None


FIRST, SECOND = "2026-03-02T10:01:00Z", "2026-03-02T10:02:00Z"
CAUSES = {
    "it succeeded": ([pod(states=[ended(0, "Completed")])], None),
    "it failed": ([pod(states=[ended(3)])], Cause("Error", "work", 3)),
    "it had too little memory": (
        [pod(states=[ended(137, "OOMKilled")])],
        Cause("OOMKilled", "work", 137),
    ),
    "its last words": (
        [pod(states=[ended(3, message="the disk\nis \x00full\n")])],
        Cause("Error", "work", 3, "the disk is full"),
    ),
    "an init container": ([pod(inits=[ended(2)])], Cause("Error", "init", 2)),
    "the first of two Pods": (
        [pod(states=[ended(4, at=SECOND)]), pod(states=[ended(3, at=FIRST)])],
        Cause("Error", "work", 3),
    ),
    "the first of two containers, by time": (
        [pod(states=[ended(143, at=SECOND), ended(3, at=FIRST)])],
        Cause("Error", "work", 3),
    ),
    "it was begun again": (
        [pod(states=[waiting("CrashLoopBackOff") | {"last": ended(5)}])],
        Cause("Error", "work", 5),
    ),
    "a Pod that was evicted before it began": (
        [pod("Failed", reason="Evicted", message="The node was low on memory.")],
        Cause("Evicted", message="The node was low on memory."),
    ),
    "a Pod that was evicted while it ran": (
        [pod("Failed", states=[ended(137)], reason="Evicted", message="low on memory")],
        Cause("Evicted", "work", 137, "low on memory"),
    ),
    "nothing failed yet": ([pod("Running", states=[{"running": {}}])], None),
}


@pytest.mark.parametrize(("pods", "cause"), CAUSES.values(), ids=CAUSES)
def test_how_the_container_ended_that_failed_first(pods, cause):
    assert look(pods).cause == cause


def test_last_words_are_short_and_hold_nothing_that_a_terminal_obeys():
    assert clean("\x1b[31mred\x1b[0m\ttext\r\n") == "red text"
    assert clean("a\u202eb") == "ab"
    assert len(clean("ä" * 5000).encode()) <= MESSAGE_BYTES
    assert clean("\ud800x") == "x"


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "status", "containerStatuses", "state", "terminated", "exitCode"]
            ),
            inner,
        )
    ),
    max_leaves=9,
)


@given(st.lists(JUNK, max_size=3))
def test_reading_pods_never_raises(pods):
    look(pods)
