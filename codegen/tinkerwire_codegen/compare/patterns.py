"""Regular expressions as finite automata: proof that one includes another, or texts that show the contrary."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import greenery
from greenery.parse import NoMatch

MAX_LENGTH = 400
MAX_REPEAT = 30
OTHER_CHARACTERS = "~é"
"""Characters for those places where an example may have any character that no pattern names."""


def is_included(inner: list[str], outer: str) -> bool:
    """Report whether it is shown that each text which fits all inner patterns fits the outer one."""
    if outer in inner:
        return True
    difference = _subtract(tuple(inner), outer)
    return difference is not None and bool(difference.empty())


def list_texts(inner: list[str], outer: str | None = None, limit: int = 6) -> list[str]:
    """List the shortest texts that fit all inner patterns and, if it is given, do not fit the outer one."""
    automaton = _subtract(tuple(inner), outer)
    return list(itertools.islice(_generate(automaton), limit)) if automaton is not None else []


def _generate(automaton: Any) -> Iterator[str]:
    for text in automaton.strings(OTHER_CHARACTERS):
        yield "".join(map(str, text))


@lru_cache(maxsize=512)
def _subtract(inner: tuple[str, ...], outer: str | None) -> Any:
    """Return the automaton of the texts that fit all inner patterns but not the outer one; None if one is too hard."""
    automata = [_automaton(pattern) for pattern in (*inner, *([] if outer is None else [outer]))]
    if any(automaton is None for automaton in automata):
        return None
    positive = automata[: len(inner)]
    result = _automaton("")
    for automaton in positive:
        result = result & automaton
    return result if outer is None else result - automata[-1]


@lru_cache(maxsize=512)
def _automaton(pattern: str) -> Any:
    """Return the automaton of all texts in which the pattern is found, or None for a pattern that is too hard."""
    try:
        parts = [greenery.parse(_translate(part)) for part in _split_alternatives(pattern)]
        automaton = parts[0].to_fsm()
        for part in parts[1:]:
            automaton = automaton | part.to_fsm()
    except (NoMatch, ValueError, RecursionError, OverflowError):
        return None
    return automaton


def _split_alternatives(pattern: str) -> list[str]:
    """Split a pattern at the bars outside groups; each alternative has its own anchors."""
    if len(pattern) > MAX_LENGTH:
        raise ValueError("too long")
    parts, depth, start = [], 0, 0
    for index, token in _tokens(pattern):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token == "|" and depth == 0:
            parts.append(pattern[start:index])
            start = index + 1
    return [*parts, pattern[start:]]


def _translate(pattern: str) -> str:
    """Write a pattern of ECMAScript, which searches, in the notation of greenery, which matches the whole text."""
    starts, ends = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
    body = pattern[1 if starts else 0 : -1 if ends else None]
    tokens: list[str] = []
    repeats = 0
    for _, token in _tokens(body):
        if token in ("^", "$") or (token.startswith("(?") and token != "(?:"):
            raise ValueError("an anchor inside, or a look-around")
        if token == "?" and tokens and tokens[-1][-1] in "*+?}" and not tokens[-1].startswith("\\"):
            continue  # laziness changes no set of texts
        if token.startswith("{"):
            repeats += max(int(number or 0) for number in token[1:-1].split(","))
            if repeats > MAX_REPEAT:
                raise ValueError("too many repetitions")
        tokens.append("(" if token == "(?:" else token)
    return ("" if starts else ".*") + f"({''.join(tokens)})" + ("" if ends else ".*")


def _tokens(pattern: str) -> Iterator[tuple[int, str]]:
    """Yield the characters, escapes, character classes, group openings and repetitions of a pattern, with places."""
    index = 0
    while index < len(pattern):
        start = index
        character = pattern[index]
        if character == "\\":
            token, index = _escape(pattern, index)
        elif character == "[":
            token, index = _character_class(pattern, index)
        elif pattern.startswith("(?:", index):
            token, index = "(?:", index + 3
        elif pattern.startswith("(?", index):
            token, index = "(?", index + 2
        elif character == "{" and "}" in pattern[index:]:
            index = pattern.index("}", index) + 1
            token = pattern[start:index]
        else:
            token, index = character, index + 1
        yield start, token


def _escape(pattern: str, index: int) -> tuple[str, int]:
    letter = pattern[index + 1 : index + 2]
    if letter == "u" and pattern[index + 2 : index + 6].isalnum():
        return _literal(chr(int(pattern[index + 2 : index + 6], 16))), index + 6
    if letter == "x":
        return _literal(chr(int(pattern[index + 2 : index + 4], 16))), index + 4
    if letter in "dDwWsStrnfv":
        return f"\\{letter}", index + 2
    if not letter or letter.isalnum():
        raise ValueError("an unknown escape")
    return _literal(letter), index + 2


def _literal(character: str) -> str:
    return f"\\{character}" if character in "\\[]|(){}?*+.^$-" else character


def _character_class(pattern: str, index: int) -> tuple[str, int]:
    """Return a character class with its literal hyphens escaped, and the place after it."""
    end = index + 1
    negated = pattern.startswith("^", end)
    end += negated
    parts: list[str] = []
    while end < len(pattern) and pattern[end] != "]":
        if pattern[end] == "\\":
            token, end = _escape(pattern, end)
            parts.append(token)
            continue
        is_range = pattern[end] == "-" and parts and parts[-1] != "-" and pattern[end + 1 : end + 2] not in ("]", "")
        if is_range and not (len(parts[-1]) == 2 and parts[-1][1] in "dDwWsS"):
            parts.append("-")
        else:
            parts.append(_in_class(pattern[end]))
        end += 1
    if end >= len(pattern):
        raise ValueError("an open character class")
    return f"[{'^' if negated else ''}{''.join(parts)}]", end + 1


def _in_class(character: str) -> str:
    return f"\\{character}" if character in "\\[]^-" else character
