"""Asks the API server, with somebody else's token, whether its holder may get a path.

A SelfSubjectAccessReview authenticates and authorises in one call, and needs no right of ours. The
connections are not those of the operator: the operator's client certificate would speak for the
caller. `process` gives the question to `web.access`.
"""

from collections.abc import Callable

import aiohttp
import orjson

from evenkeel.kube.api import JSON
from evenkeel.kube.client import USER_AGENT
from evenkeel.kube.credentials import Credentials
from evenkeel.kube.surroundings import REVIEWS

CONNECTIONS = 4
"""At a time; a review takes a millisecond."""


class Reviews:
    """One session, made anew when the API server's certificate or address has changed."""

    def __init__(self, credentials: Callable[[], Credentials], *, timeout_s: float) -> None:
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._fingerprint = ""

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def may_get(self, path: str, token: str) -> bool | None:
        """Whether; None: the API server does not know the token. OSError: no answer."""
        session = await self._open()
        body = orjson.dumps(
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"nonResourceAttributes": {"path": path, "verb": "get"}},
            }
        )
        headers = {"Authorization": f"Bearer {token}", "Content-Type": JSON, "Accept": JSON}
        server = self._credentials().server
        try:
            async with session.post(
                server + REVIEWS, data=body, headers=headers, allow_redirects=False
            ) as response:
                answer = await response.read()
                status = response.status
        except ValueError:  # aiohttp refuses a header: no token looks like that
            return None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise OSError(str(error)) from error
        if status == 401:
            return None
        if status == 403:  # whoever may not even ask is nobody that the API server knows
            return False
        if status not in (200, 201):
            raise OSError(f"the API server answers {status}")
        try:
            return orjson.loads(answer)["status"]["allowed"] is True
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise OSError("that was no review") from error

    async def _open(self) -> aiohttp.ClientSession:
        credentials = self._credentials()
        if self._session is None or self._fingerprint != credentials.fingerprint:
            await self.close()
            context = credentials.context_without_certificate()
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=CONNECTIONS, ssl=context if context is not None else True
                ),
                headers={"User-Agent": USER_AGENT},
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                trust_env=False,
            )
            self._fingerprint = credentials.fingerprint
        return self._session
