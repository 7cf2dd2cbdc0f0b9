"""`evenkeel run`: reads the settings and runs the operator until a signal ends it.

Everything else that the process needs is in `evenkeel.process`.
"""

import asyncio
import sys
from pathlib import Path

import click
import uvloop

from evenkeel import log, release, settings
from evenkeel.process import main


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    envvar="EVENKEEL_KUBECONFIG",
    show_envvar=True,
    metavar="FILE",
    help="Kubeconfig of the cluster. Without it: the Pod's own credentials. ~/.kube/config is used "
    "only if it is named here.",
)
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="A YAML file of settings."
)
@click.option(
    "--health-listen",
    metavar="HOST:PORT",
    help="Address of /livez, /readyz and /metrics.  [default: 127.0.0.1:8081]",
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Watch this namespace only. May be repeated.  [default: all]",
)
@click.option(
    "--data",
    metavar="DIR",
    help="Data directory, in which the ledger is kept.  [default: $XDG_STATE_HOME/evenkeel, or "
    "~/.local/state/evenkeel]",
)
@click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="Where the ledger is kept instead: sqlite:///path/to/file.db, "
    "postgresql://user@host/database, or none. Others on the machine see options: write a URL with "
    "a password into EVENKEEL_STORE_URL.",
)
@click.option(
    "--log-format",
    type=click.Choice(["auto", "json", "text"]),
    default="auto",
    show_default=True,
    help="Format of the log on standard error. auto: text on a terminal, JSON elsewhere.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log runs that succeed too.")
def run(
    kubeconfig: Path | None,
    config: Path | None,
    health_listen: str | None,
    namespaces: tuple[str, ...],
    data: str | None,
    store_url: str | None,
    log_format: str,
    verbose: bool,
) -> None:
    """Run the operator until SIGTERM or Ctrl-C.

    Settings come from the file of --config, from environment variables such as
    EVENKEEL_MIN_INTERVAL, and from the options below. An option overrides a variable, a variable
    overrides the file. docs/settings.md lists all settings.
    """
    json = log_format == "json" or (log_format == "auto" and not sys.stderr.isatty())
    log.set_up(json=json, verbose=verbose)
    log.log("starting", version=release.VERSION, commit=release.commit())
    chosen = settings.load(
        file=config,
        health_listen=health_listen,
        namespaces=namespaces,
        data=data,
        store_url=store_url,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(kubeconfig, chosen))
