"""The URL of a PostgreSQL store: what it may say, and that nobody sees its password."""

from __future__ import annotations

import pytest

from evenkeel.ledger.postgres.address import read_address
from evenkeel.ledger.store import BadStore

SECRET = "p@ss:w/rd?#%"
ESCAPED = "p%40ss%3Aw%2Frd%3F%23%25"


def test_the_schema_is_evenkeel_unless_the_url_names_one() -> None:
    assert read_address("postgresql://me@there/db").schema == "evenkeel"
    assert read_address("postgres://me@there/db?schema=second").schema == "second"


def test_asyncpg_is_not_told_of_the_schema() -> None:
    address = read_address("postgresql://me@there/db?sslmode=require&schema=second")

    assert address.dsn == "postgresql://me@there/db?sslmode=require"


@pytest.mark.parametrize("name", ["", "Big", "1st", "pg_mine", "a-b", 'a"b', "a" * 64, "a b", "ä"])
def test_a_schema_that_must_be_quoted_is_refused(name: str) -> None:
    with pytest.raises(BadStore, match="schema: write a name of small letters"):
        read_address(f"postgresql://me@there/db?schema={name}")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://me@there", "name a database"),
        ("postgresql://me@there/", "name a database"),
        ("postgresql://me@there:port/db", "no URL can be read"),
        ("postgresql://me:a/b@there/db", "no URL can be read"),
        ("postgresql://me@[there/db", "no URL can be read"),
        ("postgresql://me@there/db?sslmode=on", "sslmode: 'on' is none of disable"),
        ("postgresql://me@there/db#1", "escape # as %23"),
        ("postgresql://me@there/db?statement_timeout=5", "statement_timeout is not an option"),
        ("postgresql://me@there/db?options=-c%20a=b", "options is not an option"),
    ],
)
def test_a_wrong_url_is_told_what_to_write(url: str, sentence: str) -> None:
    with pytest.raises(BadStore, match=sentence):
        read_address(url)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{ESCAPED}@there/db",
        f"postgresql://there/db?user=me&password={ESCAPED}",
        f"postgresql://me@there/db?sslpassword={ESCAPED}",
    ],
)
def test_nothing_that_is_printed_holds_the_password(url: str) -> None:
    address = read_address(url)
    for text in (repr(address), address.where, address.hide(f"no {SECRET} and no {ESCAPED}!")):
        assert SECRET not in text
        assert ESCAPED not in text
    assert ESCAPED in address.dsn


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{ESCAPED}@there",
        f"postgresql://me:{ESCAPED}@there:{SECRET}/db",
        f"postgresql://me:{SECRET}@there/db",
        f"postgresql://me:{ESCAPED}@there/db?shema=x",
    ],
)
def test_a_refusal_does_not_hold_it_either(url: str) -> None:
    with pytest.raises(BadStore) as refused:
        read_address(url)

    assert "p@ss" not in str(refused.value)
    assert ESCAPED not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_people_see_where_the_store_is() -> None:
    address = read_address("postgresql://me:x@there:6432/db?schema=second")

    assert address.where == "postgresql://me@there:6432/db?schema=second"
