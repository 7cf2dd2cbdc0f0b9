"""A real PostgreSQL for tests, and PgBouncer in transaction mode before it.

Debian's programs, as an unprivileged user, on 127.0.0.1 and in a socket below /tmp. The server's
user is `evenkeel`, a superuser: over TCP it needs `PASSWORD`, over the socket nobody does. Its data
is not safe from a crash of the machine (fsync is off), unless it is `durable`. `postgres_server`,
`database` and `pgbouncer` in tests/conftest.py are the fixtures. Not guaranteed: systems without
Debian's packages; `missing()` says what is missing, and the fixtures skip with its sentence.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlencode

from tests.cluster.harness import HarnessError, packages, ports
from tests.cluster.harness.report import tail

USER = "evenkeel"
PASSWORD = "it is:a/secret@home?"
"""With all that must be escaped in a URL."""

WITHIN_S = 60.0
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_size": "2GB",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "ssl": "on",
    "ssl_cert_file": "server.crt",
    "ssl_key_file": "server.key",
    "password_encryption": "scram-sha-256",
}
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
WHO_MAY = """\
local all all trust
host all all samenet scram-sha-256
"""
BOUNCER = """\
[databases]
* = host={host} port={server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {home}/users.txt
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
server_login_retry = 1
logfile = {home}/pgbouncer.log
pidfile =
"""


def missing() -> str:
    """A sentence if PostgreSQL is not here and cannot be installed, else empty."""
    return _missing(packages.POSTGRESQL)


def missing_pgbouncer() -> str:
    """The same of PgBouncer."""
    return _missing("pgbouncer")


def _missing(program: str) -> str:
    try:
        packages.ensure(program, why="the tests of the ledger")
    except HarnessError as error:
        return str(error)
    return ""


class PostgresServer:
    """A server with a directory of its own. It may be stopped, killed, paused and started again;
    its port stays."""

    def __init__(self, address: str = "127.0.0.1", *, durable: bool = False) -> None:
        self.address = address
        """One of this machine's own. Whoever else is on its network needs the password."""
        self._settings = {**SETTINGS, **(DURABLE if durable else {})}
        self.home = _home()
        self.port = ports.free(taken=set())
        self._data = self.home / "data"
        self._log = self.home / "postgres.log"
        self._bin = Path(packages.found(packages.POSTGRESQL) or "initdb").parent
        self._process: subprocess.Popen[bytes] | None = None
        self._guard = _guard(self.home)
        self._prepare()

    def _prepare(self) -> None:
        (self.home / "password").write_text(PASSWORD)
        words = ("-D", "data", "-U", USER, "-A", "trust", "--pwfile=password", "-E", "UTF8")
        self._run("initdb", *words, "--no-sync")
        (self._data / "pg_hba.conf").write_text(WHO_MAY)
        _as_server(
            *("openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=127.0.0.1"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", "data/server.key", "-out", "data/server.crt"),
            directory=self.home,
        )

    # --- its life ------------------------------------------------------------------------------

    def start(self) -> None:
        places = {"listen_addresses": self.address, "unix_socket_directories": self.home}
        settings = {"port": self.port, **places, **self._settings}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [*_drop(), str(self._bin / "postgres"), "-D", "data", *words],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ctrl-C for pytest is not for the server
            )
        self._await_answer()

    def _await_answer(self) -> None:
        assert self._process is not None
        ends = time.monotonic() + WITHIN_S
        while time.monotonic() < ends:
            if self._process.poll() is not None:
                raise HarnessError(f"PostgreSQL does not start:\n{tail(self._log)}")
            if self._psql("SELECT 1", "postgres").returncode == 0:
                return
            time.sleep(0.05)
        raise HarnessError(f"PostgreSQL does not answer:\n{tail(self._log)}")

    def stop(self) -> None:
        """Connections are cut, and what was committed is kept."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """All its processes end at once, as after a loss of power; `start` recovers."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(WITHIN_S)
        self._process = None

    def pause(self) -> None:
        """It holds connections and answers nothing until `resume`."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, which: signal.Signals) -> None:
        assert self._process is not None, "the server does not run"
        self._process.send_signal(which)  # first: it must make no more children
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for child in children.read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(child), which)

    def remove(self) -> None:
        """Stop it, and delete all it had."""
        self.stop()
        _dismiss(self._guard)
        shutil.rmtree(self.home, ignore_errors=True)

    # --- what is in it -------------------------------------------------------------------------

    @property
    def certificate(self) -> Path:
        """Of whoever signed the server's certificate."""
        return self._data / "server.crt"

    def sql(self, text: str, database: str = "postgres") -> str:
        """What the superuser's statements answer: a line a row, columns apart by `|`."""
        done = self._psql(text, database)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _psql(self, text: str, database: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._bin / "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", text],
            env={
                "PGHOST": str(self.home),
                "PGPORT": str(self.port),
                "PGUSER": USER,
                "PGDATABASE": database,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def new_database(self, template: str = "template0") -> str:
        """The name of a new database."""
        name = f"test_{secrets.token_hex(6)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop_database(self, name: str) -> None:
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def cut_connections(self, database: str) -> None:
        """Cut every connection to a database, as an administrator does."""
        self.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            f" WHERE datname = '{database}' AND pid <> pg_backend_pid()"
        )

    def url(
        self,
        database: str,
        *,
        user: str = USER,
        password: str = PASSWORD,
        port: int | None = None,
        sslmode: str = "disable",
        **query: str,
    ) -> str:
        """Over TCP; `port`: that of PgBouncer or a proxy before it."""
        who = f"{quote(user, safe='')}:{quote(password, safe='')}"
        words = urlencode({"sslmode": sslmode, **query})
        return f"postgresql://{who}@{self.address}:{port or self.port}/{database}?{words}"

    def _run(self, program: str, *words: str) -> None:
        _as_server(str(self._bin / program), *words, directory=self.home)


@contextmanager
def pgbouncer(server: PostgresServer) -> Iterator[int]:
    """Its port: connections through it are shared, transaction by transaction."""
    home, port = _home(), ports.free(taken={server.port})
    settings = BOUNCER.format(host=server.home, server=server.port, port=port, home=home)
    (home / "pgbouncer.ini").write_text(settings)
    (home / "users.txt").write_text(f'"{USER}" "{PASSWORD}"\n')
    guard = _guard(home)
    process = subprocess.Popen(
        [*_drop(), packages.found("pgbouncer") or "pgbouncer", "-q", "pgbouncer.ini"],
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    (home / "pid").write_text(str(process.pid))
    try:
        _await_port(port, process, home / "pgbouncer.log")
        yield port
    finally:
        process.terminate()
        process.wait(WITHIN_S)
        _dismiss(guard)
        shutil.rmtree(home, ignore_errors=True)


def _await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + WITHIN_S
    while time.monotonic() < ends and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise HarnessError(f"PgBouncer does not answer:\n{tail(log)}")


def _home() -> Path:
    """Short, for a socket's path ends at 107 bytes, and not below root's home."""
    home = Path(tempfile.mkdtemp(prefix="evenkeel-pg-", dir="/tmp"))
    if os.geteuid() == 0:
        who = _user()
        os.chown(home, who.pw_uid, who.pw_gid)
        home.chmod(0o755)  # a test as another user reaches the socket
    return home


def _drop() -> list[str]:
    """The words before a command that PostgreSQL's user runs: it refuses to run as root. setpriv
    becomes the command, so the process is the server's own."""
    if os.geteuid() != 0:
        return []
    who = _user()
    return [
        *("setpriv", f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}"),
        *("--clear-groups", "--"),
    ]


def _user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _as_server(*command: str, directory: Path) -> None:
    done = subprocess.run(
        [*_drop(), *command], cwd=directory, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise HarnessError(f"{command[0]} failed:\n{done.stderr}{done.stdout}")


def _guard(home: Path) -> subprocess.Popen[bytes]:
    """Ends what runs in `home` and deletes it if pytest is killed: its end of the pipe closes."""
    script = (
        'read -r word && exit; for f in data/postmaster.pid pid; do [ -f "$f" ] &&'
        ' kill -QUIT "$(head -n 1 "$f")"; done; sleep 1; rm -rf "$PWD"'
    )
    return subprocess.Popen(
        ["sh", "-c", script],
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _dismiss(guard: subprocess.Popen[bytes]) -> None:
    guard.communicate(b"done\n", timeout=WITHIN_S)
