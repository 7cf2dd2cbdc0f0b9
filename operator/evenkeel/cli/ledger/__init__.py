"""`evenkeel ledger`: looks after a store of the ledger, without the operator.

One module for each of its commands. All but `copy` open the store for reading alone, so they may
run beside an operator.
"""

import click

from evenkeel.cli.ledger.audit import audit
from evenkeel.cli.ledger.check import check
from evenkeel.cli.ledger.copy import copy


@click.group()
def ledger() -> None:
    """Check, copy and audit the store of the ledger."""


for _command in (check, copy, audit):
    ledger.add_command(_command)
