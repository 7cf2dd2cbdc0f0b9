"""Mount, network and process namespaces of its own for a real node, joined to the host by one link.

Called by control_plane.py. Whatever containerd, the kubelet, kube-proxy and their containers mount,
listen on, route, filter or start happens inside and ends with the first process there: so nodes
run side by side, the host's firewall and addresses are not touched, and a crash leaves nothing
that one kill does not end. What the kernel does not end by itself - the cgroups, and the host's
side of the link, which it takes back late - `dismantle` removes. Not guaranteed: a way from inside
to other machines; there is no route to them.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

from . import cgroups, locks, packages, processes, state
from .enclosure_init import PRIVATE
from .report import HarnessError
from .state import State

OUTER, INNER = "enclosure", "enclosure-init"
# Addresses for measuring networks (RFC 2544), which no network routes: 198.18.N.1 is the host,
# 198.18.N.2 the node.
_ADDRESSES = "198.18.{}.{}"
LINK = "evenkeel{}"
_LINKS = 256


def build(found: State) -> None:
    """Makes the namespaces, the link and the cgroup; writes the node's address into the state."""
    directory = found.directory / "enclosure"
    directory.mkdir()
    cgroups.create(cgroup(found))
    with _machine_wide():
        for path in PRIVATE:
            Path(path).mkdir(parents=True, exist_ok=True)  # mount points; empty on the host
    log = found.directory / "logs" / "enclosure.log"
    program = Path(__file__).with_name("enclosure_init.py")
    found.processes[OUTER] = processes.spawn(
        [
            *(_tool("unshare"), "--mount", "--net", "--pid", "--fork", "--kill-child"),
            *("--mount-proc", sys.executable, "-I", program, directory),
        ],
        log=log,
        environment={"PATH": packages.PATH},
    )
    found.save()
    processes.wait_until(
        (directory / "ready").exists,
        what="the enclosure of the node",
        process=found.processes[OUTER],
        log=log,
        seconds=30,
    )
    found.processes[INNER] = processes.child_of(found.processes[OUTER])
    found.save()
    _join(found)


def inside(found: State, *, network_only: bool = False) -> list[str]:
    """What to put before a command so that it runs in there.

    With `network_only` the process sees the host's files and is killed by its own pid."""
    kinds = ["--net"] if network_only else ["--mount", "--net", "--pid"]
    return [_tool("nsenter"), f"--target={found.processes[INNER].pid}", *kinds, "--"]


def end(found: State) -> None:
    """Ends all processes inside, if there are any."""
    if INNER in found.processes:
        processes.kill([found.processes[INNER]])
        # It buries the first one. Killed at the same time it would leave a zombie to the machine,
        # and not every machine's first process cares for such.
        processes.wait_for_end(found.processes[OUTER], within_s=5)


def dismantle(found: State) -> None:
    """After the processes have ended: removes what the kernel does not."""
    if OUTER not in found.processes:
        return
    with contextlib.suppress(HarnessError):  # gone already, with the namespace at its other end
        if found.link is not None:
            _run("ip", "link", "delete", LINK.format(found.link))
    cgroups.remove(cgroup(found))
    with _machine_wide():
        # To remove a mount point unmounts it in every other namespace, and another node's with it.
        if not any(_enclosed(name) for name in state.names() if name != found.name):
            for path in PRIVATE:
                with contextlib.suppress(OSError):  # not empty: the host's own, and in use
                    Path(path).rmdir()


def cgroup(found: State) -> str:
    return f"evenkeel-{found.token}"


def _join(found: State) -> None:
    """One link, the node's end named eth0; only the two of them are on it."""
    init = str(found.processes[INNER].pid)
    with _machine_wide():
        found.link = _free_link()
        found.save()
        name = LINK.format(found.link)
        _run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", init)
    here, there = (_ADDRESSES.format(found.link, end) for end in (1, 2))
    _run("ip", "address", "add", f"{here}/30", "dev", name)
    _run("ip", "link", "set", name, "up")
    for command in (
        ("ip", "link", "set", "lo", "up"),
        ("ip", "address", "add", f"{there}/30", "dev", "eth0"),
        ("ip", "link", "set", "eth0", "up"),
    ):
        _run(*inside(found, network_only=True), *command)
    found.address = there
    found.save()


def _free_link() -> int:
    names = {link["ifname"] for link in json.loads(_run("ip", "-json", "link"))}
    routes = {route["dst"] for route in json.loads(_run("ip", "-json", "route"))}
    for number in range(_LINKS):
        taken = _ADDRESSES.format(number, 0) in {route.split("/")[0] for route in routes}
        if LINK.format(number) not in names and not taken:
            return number
    raise HarnessError(f"{_LINKS} nodes on one machine are enough.")


def _enclosed(name: str) -> bool:
    other = state.load(name)
    return other is not None and OUTER in other.processes and other.processes[OUTER].alive


def _machine_wide() -> contextlib.AbstractContextManager[None]:
    return locks.held(Path("/run/evenkeel-node.lock"), waiting_for="another node's start or end")


def _tool(name: str) -> str:
    found = packages.found(name)
    if not found:
        raise HarnessError(f"no `{name}` command here: install util-linux.")
    return found


def _run(*command: str) -> str:
    program = packages.found(command[0]) or command[0]
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HarnessError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
