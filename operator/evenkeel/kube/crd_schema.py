"""Compares the CRDs that the cluster serves with those that this operator was built with.

The description of each CRD names the hash of its schema, which `resource.crd` writes, and every
authenticated user may read the description. Not noticed: a CRD that was edited by hand.
"""

import re
from collections.abc import Mapping

from evenkeel import clock as clocks
from evenkeel.kube.api import OURS, Api, NoAnswer, NotSent
from evenkeel.log import log
from evenkeel.resource.names import GROUP, VERSION
from evenkeel.resource.schema_hash import SCHEMA_HASHES

EVERY_S = 600.0

CONFIRMED_AFTER_S = 15.0
"""A CRD that has just been applied is published some seconds later: another schema is told only if
the second look finds it too."""

_PATH = f"/openapi/v3{OURS}"
_COMPONENTS = f"{'.'.join(reversed(GROUP.split('.')))}.{VERSION}"
_HASH = re.compile(r"Schema ([0-9a-f]+)\.")


Hashes = dict[str, str | None]
"""By kind. None: it cannot be read, or names none."""


class CrdSchema:
    """Looks at the start and every ten minutes."""

    def __init__(self, api: Api, *, ours: Mapping[str, str] = SCHEMA_HASHES) -> None:
        self._api = api
        self._ours = dict(ours)
        self._told: Hashes = {}
        self.matches: bool | None = None
        """Whether the cluster serves our schemas; None: it cannot be told of all."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            found = await self.look()
            if found not in (self._ours, self._told):
                await clocks.sleep(CONFIRMED_AFTER_S)
                found = await self.look()
            self._tell(found)
            await clocks.sleep(EVERY_S)

    async def look(self) -> Hashes:
        """The hashes that the served schemas name."""
        unknown: Hashes = dict.fromkeys(self._ours)
        try:
            reply = await self._api.call("GET", _PATH)
        except (NotSent, NoAnswer):
            return unknown
        schemas = (reply.json().get("components") or {}).get("schemas") or {}
        return {kind: _hash_of(schemas.get(f"{_COMPONENTS}.{kind}")) for kind in unknown}

    def _tell(self, found: Hashes) -> None:
        told, self._told = self._told, found
        differ = [kind for kind, hash_ in found.items() if hash_ not in (None, self._ours[kind])]
        unknown = [kind for kind, hash_ in found.items() if hash_ is None]
        self.matches = False if differ else None if unknown else True
        if found == told:
            return
        for kind in differ:
            log(
                "crd schema differs",
                level="warning",
                kind=kind,
                sentence=f"the CRD of {kind} in the cluster has schema {found[kind]}, and this"
                f" operator was built with schema {self._ours[kind]}: apply the crds/ of the"
                " operator's version, or run the operator of the CRD's version",
            )
        if unknown:
            log(
                "crd schema unknown",
                level="warning",
                sentence="the cluster does not tell which schema the CRD has of"
                f" {' and '.join(unknown)}",
            )
        if self.matches:
            schemas = " ".join(f"{kind}={hash_}" for kind, hash_ in self._ours.items())
            log("crd schema matches", schemas=schemas)


def _hash_of(schema: object) -> str | None:
    described = schema.get("description") if isinstance(schema, Mapping) else None
    named = _HASH.search(described) if isinstance(described, str) else None
    return named[1] if named else None
