"""The command `evenkeel`, with one module for each subcommand.

Exit codes: 0 success; 1 a manifest was refused, or the command failed; 2 wrong options or settings.
"""

import importlib
import signal
import sys

import click

from evenkeel import release
from evenkeel.errors import BadSetting, EvenkeelError

_COMMANDS = {
    "run": "Run the operator.",
    "plan": "Print the due times of manifests. Needs no cluster.",
    "lint": "Find every mistake of manifests, for CI too. Needs no cluster.",
    "load": "Print the load of manifests over 24 hours. Needs no cluster.",
    "advise": "Say which fixed schedules could become intervals. Needs no cluster.",
    "runs": "Print what became of due times, from the ledger's store.",
    "ledger": "Check, copy and audit the store of the ledger.",
    "version": "Print the release and its commit.",
}


class _Group(click.Group):
    """Imports a command only when it is called: `plan` must not wait for the import of kopf."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        if name == "run":
            # Signals without a handler do not reach the first process of a container, and kopf's
            # import takes a second: a Pod deleted meanwhile would stay for its whole grace period.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        command: click.Command = getattr(importlib.import_module(f"evenkeel.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(release.VERSION, prog_name="evenkeel")
def cli() -> None:
    """Cron for Kubernetes that keeps an even load."""


def main() -> None:
    """The console script. Errors that a person can mend are printed as a sentence."""
    try:
        cli(standalone_mode=True)
    except BadSetting as error:
        _fail(error, code=2)
    except EvenkeelError as error:
        _fail(error, code=1)


def _fail(error: EvenkeelError, *, code: int) -> None:
    print(f"evenkeel: {error}", file=sys.stderr)
    sys.exit(code)
