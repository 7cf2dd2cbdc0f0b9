"""`evenkeel run`: the operator."""

import asyncio
import sys
from pathlib import Path

import click
import uvloop

from evenkeel import log, settings
from evenkeel.process import main


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    envvar="EVENKEEL_KUBECONFIG",
    show_envvar=True,
    metavar="FILE",
    help="Credentials; without it the Pod's own. The current context of other tools is not used.",
)
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings, in YAML."
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Where /livez, /readyz and /metrics answer.  [default: 127.0.0.1:8080]",
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Only this namespace; may be repeated.  [default: all]",
)
@click.option(
    "--log-format",
    type=click.Choice(["auto", "json", "text"]),
    default="auto",
    show_default=True,
    help="Of the log on standard error; auto: text on a terminal, JSON elsewhere.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log successful runs too.")
def run(
    kubeconfig: Path | None,
    config: Path | None,
    listen: str | None,
    namespaces: tuple[str, ...],
    log_format: str,
    verbose: bool,
) -> None:
    """Run the operator until SIGTERM or Ctrl-C.

    Settings come from --config, from variables such as EVENKEEL_MIN_INTERVAL, and from the options
    below; the later wins. The README lists them.
    """
    json = log_format == "json" or (log_format == "auto" and not sys.stderr.isatty())
    log.set_up(json=json, verbose=verbose)
    chosen = settings.load(file=config, listen=listen, namespaces=namespaces)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(kubeconfig, chosen))
