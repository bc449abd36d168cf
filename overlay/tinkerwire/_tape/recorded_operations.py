"""The operations of a tape, and the search for the one that a replayed request repeats.

An operation is all attempts with one idempotency key, or of one batch in several encodings. It is matched by its
content and, among equal ones, by its order.
Each operation is matched once, also by several processes.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from tinkerwire_base.conversion.json_text import parse_json

from .request_content import RequestContent, list_ids, read_content
from .tape_file import RecordedExchange


@attrs.frozen(eq=False)
class RecordedOperation:
    """All attempts of one request."""

    number: int
    content: RequestContent
    exchanges: list[RecordedExchange]
    key: bytes
    """Digest of the content."""
    ids: list[str]
    """The ids of the server in the content."""

    @property
    def outcome(self) -> RecordedExchange:
        """The last attempt with a response, or else the last one."""
        answered = [exchange for exchange in self.exchanges if exchange.status is not None]
        return (answered or self.exchanges)[-1]


class RecordedOperations:
    """The operations of a tape. Used on one thread.

    Threads that create models or samplers at once race for their ids, so that a replay may give the id of one recorded
    model to another. Operations are therefore compared without the ids of the server; the first difference between
    ids that nothing contradicts shows which recorded id an id of the replay stands for.

    Args:
        exchanges: exchanges in the order of their starts.
        claims: folder that the processes of one replay share; each file in it is an operation that one has matched.
    """

    def __init__(self, exchanges: Sequence[RecordedExchange], claims: Path) -> None:
        self._claims = claims
        self._claimed: set[int] = set()
        self._own: set[int] = set()
        groups = _group(exchanges)
        self._known_ids = frozenset(name for content, attempts in groups for name in _list_ids(content, attempts))
        self.all: list[RecordedOperation] = []
        self._alike: defaultdict[bytes, list[RecordedOperation]] = defaultdict(list)
        """Operations by the digest of their content without ids."""
        self._starts: defaultdict[bytes, int] = defaultdict(int)
        """Number of the first operation of each list that may be unclaimed."""
        for number, (content, attempts) in enumerate(groups):
            alike, ids = content.without_ids(self._known_ids)
            operation = RecordedOperation(number, content, attempts, content.key(), ids)
            self.all.append(operation)
            self._alike[alike].append(operation)
        self._names: dict[str, str] = {}
        """The recorded id that an id of the replay stands for, where they differ."""

    def claim(self, content: RequestContent) -> RecordedOperation | None:
        """Return the recorded operation that a request repeats, once; None without one."""
        while True:
            found = self._find(content)
            if found is None or self._try_claim(found):
                break
        if found is not None:
            self._names.update(self._new_names(content.without_ids(self._known_ids)[1], found) or {})
        return found

    def list_equal(self, content: RequestContent) -> list[RecordedOperation]:
        """Return all operations with this content, without claiming them."""
        alike, ids = content.without_ids(self._known_ids)
        return [operation for operation in self._alike.get(alike, ()) if self._new_names(ids, operation) == {}]

    @property
    def has_claims(self) -> bool:
        """True once this process has matched an operation."""
        return bool(self._own)

    def share(self, claims: Path) -> None:
        """Share matches with the processes that use another folder."""
        self._claims = claims
        self._claimed.clear()
        self._starts.clear()

    def is_claimed(self, operation: RecordedOperation) -> bool:
        """Return whether a process of this replay has matched an operation."""
        return operation.number in self._claimed or (self._claims / str(operation.number)).exists()

    def _find(self, content: RequestContent) -> RecordedOperation | None:
        """Return the first equal operation, else the first with other counters, else the first with other ids."""
        alike, ids = content.without_ids(self._known_ids)
        operations, key = self._alike.get(alike, []), content.translate(self._names).key()
        while self._starts[alike] < len(operations) and operations[self._starts[alike]].number in self._claimed:
            self._starts[alike] += 1
        same_ids = other_ids = None
        for operation in operations[self._starts[alike] :]:
            names = None if operation.number in self._claimed else self._new_names(ids, operation)
            if names is None:
                continue
            if not names and operation.key == key:
                return operation
            if names:
                other_ids = other_ids or operation
            else:
                same_ids = same_ids or operation
        return same_ids or other_ids

    def _new_names(self, ids: list[str], operation: RecordedOperation) -> dict[str, str] | None:
        """Return the ids that would stand for other recorded ones; None if that contradicts what is known."""
        names: dict[str, str] = {}
        taken = set(self._names.values())
        for current, recorded in zip(ids, operation.ids, strict=True):
            known = self._names.get(current, names.get(current))
            if known is not None:
                if known != recorded:
                    return None
            elif recorded in taken:
                return None
            elif current != recorded:
                names[current] = recorded
                taken.add(recorded)
        return names

    def _try_claim(self, operation: RecordedOperation) -> bool:
        self._claimed.add(operation.number)
        # A parent process that has ended removed the folder.
        self._claims.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(self._claims / str(operation.number), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            self._own.add(operation.number)
            return True
        return False


def _group(exchanges: Sequence[RecordedExchange]) -> list[tuple[RequestContent, list[RecordedExchange]]]:
    """Return the attempts of each operation, with its content."""
    groups: list[tuple[RequestContent, list[RecordedExchange]]] = []
    by_key: dict[str | bytes, list[RecordedExchange]] = {}
    for exchange in exchanges:
        key = exchange.headers.get("x-idempotency-key", "")
        attempts = by_key.get(key) if key else None
        if attempts is None:
            query = tuple((name, value) for name, value in exchange.query)
            content = read_content(exchange.method, exchange.path, query, exchange.headers, exchange.content)
            batch = content.batch_key()
            attempts = by_key.get(batch) if batch else None
            if attempts is None:
                attempts = []
                groups.append((content, attempts))
            by_key.update({name: attempts for name in (key, batch) if name})
        attempts.append(exchange)
    return groups


def _list_ids(content: RequestContent, attempts: Sequence[RecordedExchange]) -> Iterator[str]:
    yield from list_ids(content.body)
    for exchange in attempts:
        with suppress(ValueError):
            yield from list_ids(parse_json(exchange.response))
