"""Reads the texts of files, of directories, and of standard input.

`documents` calls `texts`. A directory is read as `kubectl apply -f` reads it: files of the known
endings, sorted by name, without subdirectories unless `recursive`. What cannot be read becomes a
Problem, and the rest is read all the same. This is the only module of the package that opens files.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evenkeel.manifests.findings import Problem

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
"""Of a directory only these files are read, as kubectl does. A file that is named may have any
name."""

FILE_BYTES_MAX = 256 * 1024 * 1024
"""100,000 ScheduledJobs take 100 MB: a larger file is probably the wrong one."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text of one file or of standard input."""

    source: str
    content: str
    in_directory: bool


def texts(
    path: str, *, recursive: bool, stdin: Callable[[], str], problems: list[Problem]
) -> Iterator[Text]:
    """The texts of a file, of the files in a directory, or of standard input."""
    if path == STDIN:
        yield Text("stdin", stdin(), in_directory=False)
        return
    in_directory = os.path.isdir(path)
    files = _files(Path(path), problems, recursive=recursive) if in_directory else [Path(path)]
    for file in files:
        content = _content(file, problems)
        if content is not None:
            yield Text(str(file), content, in_directory)


def _files(path: Path, problems: list[Problem], *, recursive: bool) -> list[Path]:
    """The manifests of a directory. Links to directories are not followed, as kubectl does not:
    they could lead in a circle."""

    def unreadable(wrong: OSError) -> None:
        problems.append(_unreadable(Path(wrong.filename or path), wrong))

    files: list[Path] = []
    subdirectories = False
    failed = len(problems)
    for directory, below, names in os.walk(path, onerror=unreadable):
        files += [Path(directory, name) for name in names if Path(name).suffix in SUFFIXES]
        subdirectories |= bool(below)
        if not recursive:
            break
    files = sorted(file for file in files if file.is_file())
    if not files and len(problems) == failed:
        hint = "; with -R its subdirectories are read, too" if subdirectories > recursive else ""
        sentence = f"holds no file that ends in {', '.join(SUFFIXES)}{hint}"
        problems.append(Problem(str(path), 0, "", "", sentence))
    return files


def _content(file: Path, problems: list[Problem]) -> str | None:
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
    except OSError as wrong:
        problems.append(_unreadable(file, wrong))
        return None
    if len(content) > FILE_BYTES_MAX:
        problems.append(Problem(str(file), 0, "", "", "is larger than 256 MiB"))
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        problems.append(Problem(str(file), 0, "", "", "is not UTF-8 text"))
        return None


def _unreadable(path: Path, wrong: OSError) -> Problem:
    return Problem(str(path), 0, "", "", f"cannot be read: {wrong.strerror or wrong}")
