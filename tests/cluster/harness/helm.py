"""Runs helm: `helm("template", "evenkeel", str(CHART))`.

Called by the tests of the chart. Helm is built by build.py on the first call. It sees nothing that
this machine's user has told a helm: no repository, no plugin, no registry login, and no cluster but
that of `kubeconfig`. Not guaranteed: that what one call keeps (a repository, a login) is there for
another process; it is for all calls of this one.
"""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Protocol

from . import build
from .report import HarnessError

CHART = Path(__file__).parents[3] / "charts" / "evenkeel"


class Helm(Protocol):
    """The function `helm` below, as a fixture hands it to tests."""

    def __call__(
        self,
        *args: str,
        kubeconfig: Path | None = None,
        input: str | None = None,
        check: bool = True,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]: ...


def write_readme(chart: Path) -> None:
    """Write the chart's README.md from README.md.gotmpl and the comments in values.yaml."""
    command = [str(build.built("helm-docs") / "helm-docs"), "--log-level=warning"]
    command += ["--chart-search-root=.", "--sort-values-order=file"]
    # In the chart's own folder: helm-docs looks for its templates from there.
    done = subprocess.run(command, cwd=chart, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HarnessError(f"helm-docs failed: {done.stderr.strip()}")


def helm(
    *args: str,
    kubeconfig: Path | None = None,
    input: str | None = None,
    check: bool = True,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """What a call of helm says; with `check`, its failure is an error with its words."""
    try:
        done = subprocess.run(
            [str(program()), *args],
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=environment(kubeconfig),
        )
    except subprocess.TimeoutExpired as error:
        raise HarnessError(
            f"`helm {' '.join(args)}` took more than {timeout:.0f} seconds."
        ) from error
    if check and done.returncode != 0:
        raise HarnessError(f"`helm {' '.join(args)}` failed: {done.stderr.strip()}")
    return done


@functools.cache
def program() -> Path:
    return build.built("helm") / "helm"


@functools.cache
def _home() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="evenkeel-helm-")


def environment(kubeconfig: Path | None) -> dict[str, str]:
    """That of a helm which knows nothing of this machine's user."""
    home = Path(_home().name)
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith("HELM_")},
        **{f"HELM_{what}_HOME": str(home / what) for what in ("CACHE", "CONFIG", "DATA")},
        # Without it helm would take the cluster that the user's kubectl talks to.
        "KUBECONFIG": str(kubeconfig or home / "no-cluster"),
    }
