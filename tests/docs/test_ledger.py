"""The commands of the page on the ledger, typed as they stand, and what they print.

The operator is started by the page's own words and keeps its ledger in a file, and then in a
database. Outputs are compared in shape (shape.py): times and durations differ.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import environment
from tests.cluster.world import World, eventually, template
from tests.docs.blocks import PROGRAMS, Block, block
from tests.docs.shape import same
from tests.ledger.postgres_server import PASSWORD, PostgresServer
from tests.unit.test_words import table

from evenkeel.cli.ledger.audit import TOTALS
from evenkeel.ledger import open_store
from evenkeel.ledger.documents import document_of
from evenkeel.ledger.rows import Range, RunRow
from evenkeel.ledger.store import BadStore
from evenkeel.model import RunId, RunState

EVERY_TEN_SECONDS = {"every": "10s", "offset": "0s"}
URL = "postgresql://evenkeel@localhost:5432/history"


def _figures(text: str) -> str:
    """How late runs were, how large a file is and how many rows a table has differ, too."""
    text = re.sub(r"\b\d+\.\d+(?=s\b| MB,)", "0.1", text)
    return re.sub(r"(?m)(?<=  )[\d,]+(?=  |$)", "0", text)


class Terminal:
    """A shell in a directory of its own, with the kubeconfig that the page names."""

    def __init__(self, world: World, directory: Path) -> None:
        self.world = world
        self.ns = world.namespace("docs")
        self.directory = directory
        self.variables: dict[str, str] = {}
        kubeconfig = directory / "path" / "to" / "kubeconfig"
        kubeconfig.parent.mkdir(parents=True)
        kubeconfig.symlink_to(world.cluster.kubeconfig)

    def environment(self, settings: Mapping[str, str] | None = None) -> dict[str, str]:
        ours = environment(settings or {})
        path = f"{PROGRAMS}{os.pathsep}{ours['PATH']}"
        return {**ours, "PATH": path, "LC_ALL": "C.UTF-8", **self.variables}

    def types(self, line: str) -> str:
        """Its answer. What a terminal shows beside it, such as progress, is no part of the page."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.directory,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        print(f"$ {line}\n{done.stdout}{done.stderr}")  # shown where the test fails
        return done.stdout.replace(f"{self.ns}/", "default/").replace(f"{self.directory}", "…")

    @contextmanager
    def runs(self, page: Block) -> Iterator[None]:
        """The commands of a block, of which the last goes on until Ctrl-C."""
        script = "\n".join(["set -e", *(command.line for command in page.commands)])
        settings = {"NAMESPACES": self.ns, "HEALTH_LISTEN": "127.0.0.1:0"}
        log = self.directory / "operator.log"
        with (
            log.open("ab") as output,
            subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.directory,
                env=self.environment(settings),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield
            finally:
                os.killpg(process.pid, signal.SIGINT)
                process.wait(timeout=60)
                print(log.read_text())
        assert "Traceback" not in log.read_text()

    def follows(self, page: Block, *, within_s: float = 90) -> None:
        """All commands of a block. Rows are written a moment after what they tell."""
        for command in page.commands:

            def prints(line: str = command.line, printed: str = command.output) -> bool:
                said = self.types(line)
                assert same(_figures(printed), _figures(said)), f"$ {line}\n{said}"
                return True

            eventually(prints, f"$ {command.line}", every_s=1, within_s=within_s)


@pytest.fixture
def terminal(kwok_cluster: Cluster, tmp_path: Path) -> Iterator[Terminal]:
    kwok_cluster.install_crd()
    world = World(kwok_cluster)
    found = Terminal(world, tmp_path)
    world.create(found.ns, "often", interval=EVERY_TEN_SECONDS, jobTemplate=template(runs_for="1s"))
    yield found
    world.leave()
    world.close()


def test_a_file_is_read_audited_and_copied_by_the_words_of_the_page(terminal: Terminal) -> None:
    with terminal.runs(block("ledger-file-operator")):
        terminal.follows(block("ledger-file"))
        terminal.follows(block("ledger-audit"))
        terminal.follows(block("ledger-copy"))


def test_a_database_is_written_and_read_by_the_words_of_the_page(
    terminal: Terminal, postgres_server: PostgresServer, database: str
) -> None:
    begin, start = block("ledger-database-operator").commands
    variables = dict(re.findall(r"(\w+)=(\S+)", begin.line))
    assert variables == {"EVENKEEL_STORE_URL": URL, "PGPASSWORD": "secret"}
    terminal.variables = {
        "EVENKEEL_STORE_URL": URL.replace(
            "localhost:5432/history", f"{postgres_server.address}:{postgres_server.port}/{database}"
        ),
        "PGPASSWORD": PASSWORD,
    }
    operator = block("ledger-database-operator")
    line = Block(operator.page, operator.line, "sh", operator.word, f"{start.line}\n")
    with terminal.runs(line):
        terminal.follows(block("ledger-database"))
    for secret in (PASSWORD, quote(PASSWORD, safe="")):
        assert secret not in (terminal.directory / "operator.log").read_text()


# --- tables of words ------------------------------------------------------------------------------


def words(heading: str) -> list[str]:
    """All words of the first columns below a heading."""
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", table("ledger.md", heading), re.MULTILINE)
    return [word for row in rows for word in re.findall(r"\w+", row)]


def test_the_page_explains_every_key_of_a_row_and_every_kind_of_range() -> None:
    keys = document_of(RunRow(RunId("uid", 0), "default/often", RunState.SUCCEEDED))
    assert sorted(words("Reading it")) == sorted([*keys, "range", *map(str, Range)])


def test_the_page_explains_every_total_of_an_audit() -> None:
    assert words("Audit") == list(TOTALS)


# --- rights in PostgreSQL -------------------------------------------------------------------------


@pytest.fixture
def role(postgres_server: PostgresServer, database: str) -> Iterator[str]:
    """An ordinary role, which may connect and no more."""
    name = f"role_{database}"
    postgres_server.sql(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'", database)
    yield name
    postgres_server.sql(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}", database)


def opens(server: PostgresServer, database: str, role: str, *, readonly: bool = False) -> str:
    """What is said to a role that opens the store; nothing if it may."""

    async def attempt() -> None:
        url = server.url(database, user=role, password="secret")
        store = await open_store(url, readonly=readonly)
        await store.close()

    try:
        asyncio.run(attempt())
    except BadStore as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["ledger-grant", "ledger-schema"])
def test_either_right_lets_an_ordinary_role_begin_a_ledger(
    postgres_server: PostgresServer, database: str, role: str, name: str
) -> None:
    """And what the page grants to readers lets them read."""
    begins = {"ledger-grant": block("ledger-grant"), "ledger-schema": block("ledger-schema")}[name]
    assert "GRANT" in opens(postgres_server, database, role)

    text = re.sub(r"(?<=TO )evenkeel\b|(?<=AUTHORIZATION )evenkeel\b", role, begins.text)
    postgres_server.sql(text.replace("DATABASE evenkeel", f"DATABASE {database}"), database)
    assert opens(postgres_server, database, role) == ""

    reader = f"reader_{database}"
    postgres_server.sql(f"CREATE ROLE {reader} LOGIN PASSWORD 'secret'", database)
    try:
        assert "GRANT" in opens(postgres_server, database, reader, readonly=True)
        rights = block("ledger-reader").text.replace("TO reader", f"TO {reader}")
        postgres_server.sql(rights, database)
        assert opens(postgres_server, database, reader, readonly=True) == ""
    finally:
        postgres_server.sql(f"DROP OWNED BY {reader}; DROP ROLE {reader}", database)
