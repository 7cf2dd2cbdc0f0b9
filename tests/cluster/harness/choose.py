"""Chooses where the cluster comes from, and is the only place that starts, finds and ends clusters.

Called by tests (through the package) and by the command line. In this order: a kubeconfig that
was named, by the argument or by EVENKEEL_TEST_KUBECONFIG; kind, where a Docker engine answers; a
control plane of our own. Never the current context. Not guaranteed: that a cluster somebody keeps
(`up`) is fresh; tests use namespaces of their own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from . import control_plane, existing, kind, locks, node, state
from .cluster import DEFAULT, Cluster, Options, Pods
from .processes import this_process
from .report import HarnessError, say
from .state import Made, State

NAMED = "EVENKEEL_TEST_KUBECONFIG"


def start(
    name: str = "test",
    pods: Pods = "none",
    options: Options = DEFAULT,
    *,
    kubeconfig: Path | None = None,
    keep: bool = False,
    own: bool = False,
) -> Cluster:
    """A running cluster: the one of that name, or a new one.

    It ends with `stop()`, by `down`, or by the next call of the harness after all processes that
    asked for it are gone; with `keep`, it stays. Fake Pods, and `own`, need a control plane of our
    own: a fake node would draw Pods away from a real one. Where real Pods (`node`) cannot be, they
    are fake, which is said; `Cluster.pods` tells.
    """
    if pods != "kwok" and not own and (named := kubeconfig or _named()):
        return existing.named(named)
    sweep()
    pods = _possible(pods, own=own)
    made = _maker(pods, own=own)
    asked = control_plane.asks(pods, options) if made == "built" else kind.asks()
    with state.locked(name):
        found = state.load(name)
        if found and not _usable(found):
            _refuse_if_in_use(found)
            say(f"the cluster {name!r} did not run any more: starting it anew")
            destroy(found)
            found = None
        if not found:
            return _fresh(State(name=name, made=made, asked=_plain(asked), kept=keep))
        if (found.made, found.asked) != (made, _plain(asked)):
            raise HarnessError(
                f"the cluster {name!r} runs with other options: stop it first"
                f" (python -m tests.cluster.harness down --name {name})."
            )
        found.kept = found.kept or keep
        found.owners = [owner for owner in found.owners if owner.alive] + [this_process()]
        found.save()
        return control_plane.attach(found) if made == "built" else kind.attach(found)


def prepare(pods: Pods = "none", *, own: bool = False) -> None:
    """Builds or pulls what `start` needs first, where minutes of waiting are expected."""
    if pods != "kwok" and not own and _named():
        return
    if _maker(pods, own=own) == "built":
        control_plane.asks(_possible(pods, own=own), DEFAULT)
    else:
        kind.prepare()


def stop(name: str) -> bool:
    """Ends the cluster of that name; False if there is none."""
    with state.locked(name):
        found = state.load(name)
        if found:
            destroy(found)
        state.remove(name)
        return found is not None


def sweep() -> None:
    """Ends what crashed callers have left behind. A name that somebody works on is left alone."""
    for name in state.names():
        with locks.held_if_free(state.lock(name)) as free:
            found = state.load(name) if free else None
            if found and found.stale:
                say(f"cleaning up the cluster {name!r}, which nobody uses any more")
                try:
                    destroy(found)
                except HarnessError as error:  # its remains must not keep others from starting
                    say(str(error))
            elif free and not found:
                state.remove(name)


def running(found: State) -> bool:
    return found.ready and _usable(found)


def destroy(found: State) -> None:
    if found.made == "built":
        control_plane.destroy(found)
    else:
        kind.destroy(found)


def _fresh(found: State) -> Cluster:
    found.owners = [this_process()]
    state.create(found)
    try:
        cluster = control_plane.start(found) if found.made == "built" else kind.start(found)
        found.ready = True
        found.save()
    except BaseException:  # a Ctrl-C must not leave half a cluster either
        destroy(found)
        raise
    return cluster


def _refuse_if_in_use(found: State) -> None:
    """Another terminal may know a Docker engine that this one does not: its cluster is at work."""
    at_work = found.ready and any(owner.alive for owner in found.owners)
    if found.made == "kind" and at_work and not kind.available():
        raise HarnessError(
            f"another process uses the cluster {found.name!r}, which kind made, and no kind or no"
            " Docker engine answers here: end that process, or give another name."
        )


def _usable(found: State) -> bool:
    if not found.ready:
        return False
    return control_plane.usable(found) if found.made == "built" else kind.usable(found)


def _maker(pods: Pods, *, own: bool) -> Made:
    return "built" if own or pods == "kwok" or not kind.available() else "kind"


def _possible(pods: Pods, *, own: bool) -> Pods:
    """A real node of our own needs root and Linux; kind brings its own."""
    if pods == "node" and _maker(pods, own=own) == "built" and (why := node.impossible()):
        say(f"{why} Pods run on a fake node here: they end, but do nothing.")
        return "kwok"
    return pods


def _named() -> Path | None:
    path = os.environ.get(NAMED)
    return Path(path) if path else None


def _plain(asked: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(asked))  # as it will come back from the file
    return plain
