"""One object nested deeper than a reader here goes must not hide those beside it."""

import json

import orjson
import pytest

from evenkeel.kube.api import DEEPEST, Reply, shallow
from evenkeel.kube.kopf_session import _ShallowLines


def deep(levels: int) -> bytes:
    """The text in its middle looks like brackets, and is none."""
    nest = b'{"a":' * levels + rb'"}{\"]["' + b"}" * levels
    return b'{"metadata":{"uid":"deep"},"spec":' + nest + b',"last":1}'


@pytest.mark.parametrize("levels", [10, 1_100, 9_000])
def test_a_page_with_one_is_read(levels: int) -> None:
    page = b'{"items":[{"metadata":{"uid":"good"}},' + deep(levels) + b"]}"
    items = Reply(200, page).json()["items"]
    assert [item["metadata"]["uid"] for item in items] == ["good", "deep"]
    assert items[1]["last"] == 1


def test_what_is_cut_is_still_too_deep_to_be_sent() -> None:
    """Or half of a template would be launched."""
    found = orjson.loads(shallow(deep(9_000)))
    with pytest.raises(orjson.JSONEncodeError):
        orjson.dumps(found)


@pytest.mark.parametrize("levels", [0, 1, DEEPEST - 1])
def test_nothing_is_cut_of_what_can_be_read(levels: int) -> None:
    assert shallow(deep(levels)) == deep(levels)


class Chunks:
    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks

    async def iter_chunked(self, size: int):
        for chunk in self.chunks:
            yield chunk


@pytest.mark.parametrize("cut", [1, 700, 5_000])
async def test_lines_of_a_watch_can_be_read_by_the_standard_library(cut: int) -> None:
    text = b'{"type":"ADDED","object":' + deep(3_000) + b'}\n{"type":"BOOKMARK"}\n{"last"'
    stream = _ShallowLines(Chunks(text[:cut], text[cut:], b":1}"))  # type: ignore[arg-type]
    read = b"".join([chunk async for chunk in stream.iter_chunked(1 << 16)])
    lines = [json.loads(line) for line in read.splitlines()]
    assert [line.get("type") for line in lines] == ["ADDED", "BOOKMARK", None]
    assert lines[0]["object"]["metadata"]["uid"] == "deep"
