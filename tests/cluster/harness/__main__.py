"""The command line: `python -m tests.cluster.harness up|down|status|build`.

`up` keeps a cluster for people and prints one line on standard output, `export KUBECONFIG=...`,
for `eval "$(...)"`; everything else goes to standard error. `down` ends every cluster of this
user that the harness started, or the one that is named. Not guaranteed: that a test run in the
middle of its work survives a `down` without a name.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import build, choose, packages, promtool, state
from .cluster import Options
from .report import HarnessError, say


def main(arguments: list[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    try:
        if asked.command == "up":
            _up(asked)
        elif asked.command == "down":
            return _down(asked.name)
        elif asked.command == "status":
            _status(asked.name)
        else:
            _build(asked.parts)
    except HarnessError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    return 0


def _build(parts: list[str]) -> None:
    if parts:
        for part in parts:
            say(f"{part} is in {build.built(part)}")
        return
    # apt-get mostly waits for its mirror, and a build computes.
    with ThreadPoolExecutor(1, "apt-get") as beside:
        installing = beside.submit(_install_for_the_ledger)
        for name, part in build.PARTS.items():
            if part.usual:
                say(f"{name} is in {build.built(name)}")
        say(f"promtool is {promtool.program()}")
        installing.result()


def _install_for_the_ledger() -> None:
    try:
        packages.ensure(*packages.LEDGER, why="the tests of the ledger")
    except HarnessError as error:  # they skip, and say why
        say(str(error))


def _up(asked: argparse.Namespace) -> None:
    options = Options(profile=asked.profile)
    cluster = choose.start(asked.name, asked.pods, options, kubeconfig=asked.kubeconfig, keep=True)
    say(f"the cluster {asked.name!r} ({cluster.kind}) answers at {cluster.server}")
    print(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")


def _down(name: str | None) -> int:
    code = 0
    for each in [name] if name else state.names():
        try:
            say(f"stopped {each!r}" if choose.stop(each) else f"there is no cluster {each!r}")
        except HarnessError as error:  # the clusters after it are to end too
            say(str(error))
            code = 1
    return code


def _status(name: str | None) -> None:
    known = [name] if name else state.names()
    for each in known:
        found = state.load(each)
        if not found:
            print(f"{each}: not there")
            continue
        word = "running" if choose.running(found) else "not running"
        print(f"{each}: {word}, {found.made}, {found.directory}")
        for component, process in found.processes.items():
            print(f"  {component}: pid {process.pid}{'' if process.alive else ' (ended)'}")
    if not known:
        print("no clusters")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.harness")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a cluster that stays, or find it")
    up.add_argument("--name", default="dev")
    up.add_argument("--pods", choices=["none", "kwok", "node"], default="none")
    up.add_argument("--profile", choices=["default", "tuned"], default="tuned")
    up.add_argument("--kubeconfig", type=Path, default=None, help="use this cluster instead")
    down = commands.add_parser("down", help="end the clusters that the harness started")
    down.add_argument("--name", default=None)
    status = commands.add_parser("status", help="what runs")
    status.add_argument("--name", default=None)
    building = commands.add_parser("build", help="build the programs now, not at the first start")
    building.add_argument("parts", nargs="*", choices=[*build.PARTS, []], metavar="PART")
    return parser


if __name__ == "__main__":
    sys.exit(main())
