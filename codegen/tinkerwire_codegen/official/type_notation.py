"""Types as text in the notation of the facts: list[int], map[str, X], "a" | "b", X | null."""

from __future__ import annotations

import re


def canonicalize(text: str) -> str:
    """Sort the members of every union in a type."""
    parts = split_type(text, " | ")
    if len(parts) > 1:
        return " | ".join(sorted(set(map(canonicalize, parts))))
    match = re.fullmatch(r"(list|map|tuple)\[(.*)\]", text)
    if match:
        return f"{match[1]}[{', '.join(map(canonicalize, split_type(match[2], ', ')))}]"
    return text


def split_type(text: str, separator: str) -> list[str]:
    """Split ``text`` at separators that are outside brackets and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for place, char in enumerate(text):
        quoted ^= char == '"'
        depth += (char == "[") - (char == "]")
        if depth == 0 and not quoted and text.startswith(separator, place):
            parts.append(text[start:place])
            start = place + len(separator)
    return [*parts, text[start:]]
