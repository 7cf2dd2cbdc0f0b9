"""Compares the CRD that the cluster serves with the one that this operator was built with.

The CRD's description names the hash of its schema, which `resource.crd` writes, and every
authenticated user may read the description. Not noticed: a CRD that was edited by hand.
"""

import re

from evenkeel import clock as clocks
from evenkeel.kube.api import SCHEDULES, Api, NoAnswer, NotSent
from evenkeel.log import log
from evenkeel.resource.names import GROUP, KIND, VERSION
from evenkeel.resource.schema_hash import SCHEMA_HASH

EVERY_S = 600.0

CONFIRMED_AFTER_S = 15.0
"""A CRD that has just been applied is published some seconds later: another schema is told only if
the second look finds it too."""

_PATH = f"/openapi/v3{SCHEDULES}"
_COMPONENT = f"{'.'.join(reversed(GROUP.split('.')))}.{VERSION}.{KIND}"
_HASH = re.compile(r"Schema ([0-9a-f]+)\.")


class CrdSchema:
    """Looks at the start and every ten minutes."""

    def __init__(self, api: Api, *, ours: str = SCHEMA_HASH) -> None:
        self._api = api
        self._ours = ours
        self._told: str | None = ""
        self.matches: bool | None = None
        """Whether the cluster serves our schema; None: it cannot be told."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            found = await self.look()
            if found != self._ours and found != self._told:
                await clocks.sleep(CONFIRMED_AFTER_S)
                found = await self.look()
            self._tell(found)
            await clocks.sleep(EVERY_S)

    async def look(self) -> str | None:
        """The hash that the served schema names; None: it cannot be read, or names none."""
        try:
            reply = await self._api.call("GET", _PATH)
        except (NotSent, NoAnswer):
            return None
        schemas = (reply.json().get("components") or {}).get("schemas") or {}
        described = (schemas.get(_COMPONENT) or {}).get("description")
        named = _HASH.search(described) if isinstance(described, str) else None
        return named[1] if named else None

    def _tell(self, found: str | None) -> None:
        self.matches = None if found is None else found == self._ours
        if found == self._told:
            return
        self._told = found
        if found is None:
            log(
                "crd schema unknown",
                level="warning",
                sentence="the cluster does not tell which schema the CRD has",
            )
        elif found == self._ours:
            log("crd schema matches", schema=found)
        else:
            log(
                "crd schema differs",
                level="warning",
                sentence=f"the CRD in the cluster has schema {found}, and this operator was built"
                f" with schema {self._ours}: apply the crds/ of the operator's version, or run the"
                " operator of the CRD's version",
            )
