"""The SQL of the stores: in files, by name, and in the wheel."""

from __future__ import annotations

import pytest

from evenkeel.ledger.sql_files import migrations, statements

PACKAGES = ["evenkeel.ledger.sqlite", "evenkeel.ledger.postgres"]


@pytest.mark.parametrize("package", PACKAGES)
def test_migrations_are_numbered_from_one_without_a_gap(package: str) -> None:
    found = migrations(package)

    assert [one.number for one in found] == list(range(1, len(found) + 1))
    assert all(1 <= one.oldest_writer <= one.number for one in found)


@pytest.mark.parametrize("package", PACKAGES)
def test_each_statement_has_a_name_and_a_text(package: str) -> None:
    found = statements(package)

    assert len(found) > 20
    assert all(found.values())
