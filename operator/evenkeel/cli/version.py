"""`evenkeel version`: the release and the commit."""

import json

import click

from evenkeel import release


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the output.",
)
def version(output: str) -> None:
    """Print the release and the commit that it was built from."""
    commit = release.commit()
    if output == "json":
        print(json.dumps({"version": release.VERSION, "commit": commit or None}))
    else:
        print(f"evenkeel {release.VERSION}, commit {commit or 'unknown'}")
