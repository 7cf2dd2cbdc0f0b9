"""Where a PostgreSQL store is, read from its URL. Pure.

`postgresql://user:password@host:port/database?schema=evenkeel&sslmode=verify-full&sslrootcert=...`.
No text that this module makes holds the password.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from evenkeel.ledger.store import BadStore

SCHEMA = "evenkeel"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SSLMODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_OPTIONS = frozenset(
    {
        *("host", "port", "user", "password", "passfile", "dbname", "target_session_attrs"),
        *("sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword"),
        *("sslnegotiation", "ssl_min_protocol_version", "ssl_max_protocol_version"),
        *("krbsrvname", "gsslib"),
    }
)
"""What asyncpg reads itself. It sends anything else to the server as a setting of the session,
which a pooler refuses or forgets."""
_SECRET = ("password", "sslpassword")


@dataclass(frozen=True, slots=True)
class Address:
    """A database, and the schema in it that is the store's own."""

    dsn: str = field(repr=False)
    """For asyncpg; it has the password."""
    schema: str
    where: str
    """For people."""
    secrets: tuple[str, ...] = field(repr=False)
    """What no message may hold."""

    def hide(self, text: str) -> str:
        """The text without the password, however it is written."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def read_address(url: str) -> Address:
    """BadStore: the URL is wrong."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # what stands after the colon is a number
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:
        # The error's own text may hold a part of the password.
        raise BadStore(
            "store.url: no URL can be read from it: in a user, a password and a database, escape"
            " each of : / ? # [ ] @ and % (@ as %40)"
        ) from None
    schema = options.pop("schema", SCHEMA)
    if not _NAME.fullmatch(schema) or schema.startswith("pg_"):
        raise BadStore(
            "store.url: schema: write a name of small letters, digits and _ that begins with a"
            " letter and not with pg_, of at most 63 characters"
        )
    for option in options.keys() - _OPTIONS:
        raise BadStore(
            f"store.url: {option[:40]} is not an option of this URL; it takes schema and"
            f" {', '.join(sorted(_OPTIONS - set(_SECRET)))}"
        )
    if (sslmode := options.get("sslmode", "prefer")) not in _SSLMODES:
        raise BadStore(f"store.url: sslmode: {sslmode[:40]!r} is none of {', '.join(_SSLMODES)}")
    if parts.fragment:
        raise BadStore("store.url: escape # as %23")
    database = unquote(parts.path.strip("/")) or options.get("dbname", "")
    if not database:
        raise BadStore("store.url: name a database, as in postgresql://user@host/database")
    return Address(
        dsn=parts._replace(query=urlencode(options)).geturl(),
        schema=schema,
        where=_where(parts, options, database, schema),
        secrets=_secrets(parts, options),
    )


def _where(parts: SplitResult, options: dict[str, str], database: str, schema: str) -> str:
    host = parts.netloc.rpartition("@")[2] or options.get("host", "localhost")
    user = unquote(parts.username or "") or options.get("user", "")
    who = f"{quote(user)}@" if user else ""
    return f"postgresql://{who}{host}/{quote(database)}?schema={schema}"


def _secrets(parts: SplitResult, options: dict[str, str]) -> tuple[str, ...]:
    raw = parts.password or ""
    known = {raw, unquote(raw), *(options.get(name, "") for name in _SECRET)}
    known |= {quote(secret, safe="") for secret in known}
    # The longest first: one may be a part of another.
    return tuple(sorted(known - {""}, key=len, reverse=True))
