"""A proxy that lets a client of CronJobs speak to ScheduledJobs: it renames, and does nothing else.

    with renaming_proxy(cluster, directory=tmp_path) as kubeconfig:
        kubectl --kubeconfig kubeconfig get cronjobs.batch    # shows the ScheduledJobs

What it renames, in both directions:

- in paths: `/apis/batch/v1/…/cronjobs…` is `/apis/evenkeel.dev/v1alpha1/…/scheduledjobs…`;
- in JSON bodies, wherever both stand side by side: `apiVersion: batch/v1, kind: CronJob` is
  `apiVersion: evenkeel.dev/v1alpha1, kind: ScheduledJob`, and so for lists. That covers objects,
  items of lists, events of watches, owners of Jobs, and what an Event is about;
- in field selectors of Events: `involvedObject.kind=CronJob` is `involvedObject.kind=ScheduledJob`.

It asks the server for JSON whatever the client would take, and for nothing compressed: it could
not read the rest. No field is added, dropped, moved or computed, and no answer is invented: what a
ScheduledJob has not, the client does not get. Discovery goes through as it is, because a server
that has CronJobs names them already. Not guaranteed: that a client which sends anything but JSON is
understood.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from tests.cluster.harness import Cluster
from tests.cluster.loopback_proxy import LoopbackProxy, end_to_end
from yarl import URL

Kind = tuple[str, str]  # apiVersion and kind

THEIRS, OURS = "batch/v1", "evenkeel.dev/v1alpha1"
TO_OURS: Mapping[Kind, Kind] = {
    (THEIRS, "CronJob"): (OURS, "ScheduledJob"),
    (THEIRS, "CronJobList"): (OURS, "ScheduledJobList"),
}
TO_THEIRS: Mapping[Kind, Kind] = {ours: theirs for theirs, ours in TO_OURS.items()}
_CRONJOBS = re.compile(rf"^/apis/{THEIRS}/((?:namespaces/[^/]+/)?)cronjobs(?=/|$)")
_ABOUT = ("involvedObject.kind=CronJob", "involvedObject.kind=ScheduledJob")


def renamed(found: Any, names: Mapping[Kind, Kind]) -> Any:
    """A JSON value with other kinds, at every depth."""
    if isinstance(found, list):
        return [renamed(each, names) for each in found]
    if not isinstance(found, dict):
        return found
    new = {key: renamed(each, names) for key, each in found.items()}
    kind = (found.get("apiVersion"), found.get("kind"))
    if kind in names:
        new["apiVersion"], new["kind"] = names[kind]
    return new


def renamed_url(url: URL) -> URL:
    """What the server is asked, where the client asks for `url`."""
    new = url.with_path(_CRONJOBS.sub(rf"/apis/{OURS}/\1scheduledjobs", url.path), keep_query=True)
    chosen = url.query.get("fieldSelector", "").split(",")
    if _ABOUT[0] in chosen:
        theirs, ours = _ABOUT
        terms = [ours if term == theirs else term for term in chosen]
        new = new.update_query(fieldSelector=",".join(terms))
    return new


class RenamingProxy(LoopbackProxy):
    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if body and "json" not in request.content_type:
            return web.Response(status=415, text=f"not JSON, but {request.content_type}")
        headers = end_to_end(request.headers)
        headers |= {"Accept": "application/json", "Accept-Encoding": "identity"}
        async with self.server.request(
            request.method,
            renamed_url(request.rel_url),
            data=_renamed_text(body, TO_OURS) or None,
            headers=headers,
        ) as answer:
            response = web.StreamResponse(status=answer.status)
            response.headers.update(end_to_end(answer.headers))
            # The client may go away at any time: a watch has no other end.
            with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                await response.prepare(request)
                if "json" not in answer.content_type:
                    await response.write(await answer.read())
                elif "watch" in request.query:
                    async for line in answer.content:
                        await response.write(_renamed_text(line, TO_THEIRS) + b"\n")
                else:
                    await response.write(_renamed_text(await answer.read(), TO_THEIRS))
                await response.write_eof()
            return response


def _renamed_text(text: bytes, names: Mapping[Kind, Kind]) -> bytes:
    if not text:
        return text
    return json.dumps(renamed(json.loads(text), names)).encode()


@contextmanager
def renaming_proxy(cluster: Cluster, *, directory: Path) -> Iterator[Path]:
    """A kubeconfig by which CronJobs are ScheduledJobs."""
    proxy = RenamingProxy(cluster, directory)
    proxy.start()
    try:
        yield proxy.kubeconfig
    finally:
        proxy.stop()
