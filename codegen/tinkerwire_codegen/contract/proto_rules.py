"""Rules for the .proto of a contract: descriptions, and comments with versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tinkerwire_base.conversion.versioning import Version, parse_version

from .marks import VERSION, is_version
from .protobuf import AVAILABILITY_COMMENT, FILE, compile_descriptors

_OWNER = re.compile(r"(message|enum)\s+(\w+)\s*\{")
_FIELD = re.compile(r"[\w.<>, ]*?(\w+)\s*=\s*\d+\s*(?:\[.*\])?;")


def find_proto_errors(folder: Path, newest: str) -> Iterator[str]:
    """Yield the errors of the .proto in ``folder``, with file and line; a contract may have none."""
    path = folder / FILE
    if not path.exists():
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        broken = path.read_bytes()[: error.start].count(b"\n") + 1
        yield f"{path}:{broken}: must be UTF-8, got the byte {error.object[error.start]:#04x}; convert the file"
        return
    problems = [*_find_wrong_lines(path, lines, newest)]
    yield from problems or _compile(path)


def _compile(path: Path) -> Iterator[str]:
    try:
        compile_descriptors(path)
    except ValueError as error:
        for line in str(error).removeprefix(f"{path}: ").splitlines():
            # protoc writes FILE:LINE:COLUMN: TEXT.
            found = re.search(r":(\d+):\d+: (.*)", line)
            yield f"{path}:{found[1]}: {found[2]}" if found else f"{path}:1: {line}"


def _find_wrong_lines(path: Path, lines: list[str], newest: str) -> Iterator[str]:
    start: Version | None = None
    for number, line in enumerate(lines, 1):
        code, _, comment = (part.strip() for part in line.partition("//"))
        owner, field = _OWNER.match(code), _FIELD.match(code)
        if not owner and not field:
            continue
        name = owner[2] if owner else field[1] if field else ""
        if not lines[number - 2].strip().startswith("//"):
            yield f"{path}:{number}: {name} has no description; write a comment above it"
        problems, since = _check_comment(comment, None if owner else start, newest)
        yield from (f"{path}:{number}: {name}: {problem}" for problem in problems)
        if owner:
            start = since
            if since is None and not problems:
                yield f"{path}:{number}: {name} has no version; write // since: VERSION behind it"


def _check_comment(comment: str, start: Version | None, newest: str) -> tuple[list[str], Version | None]:
    """Return the errors of the comment behind a thing, and the start of the thing."""
    problems = []
    for part in filter(None, comment.split("; ")):
        match = AVAILABILITY_COMMENT.fullmatch(part)
        if not match or not VERSION.fullmatch(match[2] or match[4]):
            expected = "since: VERSION, until: VERSION or was TYPE until VERSION"
            problems.append(f"comment must be {expected}, got {part!r}")
            continue
        version = parse_version(match[2] or match[4])
        if match[1] == "since":
            start = version
        elif start and version <= start:
            problems.append(f"{match[2] or match[4]} must be newer than the start, {'.'.join(map(str, start))}")
        if is_version(newest) and version > parse_version(newest):
            problems.append(f"{match[2] or match[4]} must not be newer than info.version, {newest}")
    return problems, start
