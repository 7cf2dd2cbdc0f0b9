"""The SQL of this store for one schema: every name in it is qualified with `{schema}`."""

from evenkeel.ledger.sql_files import Migration, migrations, statements


class Statements:
    """Statements by name."""

    def __init__(self, schema: str) -> None:
        self._schema = quoted(schema)
        found = statements("evenkeel.ledger.postgres")
        self._texts = {name: self.qualified(text) for name, text in found.items()}

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def qualified(self, text: str) -> str:
        return text.replace("{schema}", self._schema)


def quoted(name: str) -> str:
    """An identifier as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def known_migrations() -> tuple[Migration, ...]:
    """Those that this program knows, ascending."""
    return migrations("evenkeel.ledger.postgres")


def program_number() -> int:
    """That of the last of them."""
    return known_migrations()[-1].number
