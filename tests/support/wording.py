"""Words and patterns that the project's texts avoid, and a search for them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

HEADLESS = re.compile(r"(What|Who|Whom|Whose|Whoever|Whether|How|Where|When|Why|Which)\b")
"""Openings of a clause without a main clause. A question is allowed."""

PATTERNS = {
    r"\b(is|are|was|were) ((?-i:none)|no (?!longer\b|more\b|less\b)[a-z]+)\b": "negate the verb, not the noun",
    r"\bodd(ly|er)?\b": "unexpected, unrecognised",
    r"\b(?<!injected )(?<!inject )(?<!inject-)(?<!inject_)faults?\b(?![ -]?(injection|proxy))": "error, failure or bug",
    r"\b(says?|said|tells?|told|hears?|heard|unheard)\b": "software reports, logs, returns or receives",
    r"\b(as ever|for ever|of old|abroad|taken up|given out|whoever|at the most|in vain|a thousand million)\b": "idiom",
    r"\b(tried|sent|asked|done) again\b": "retried, resent, repeated",
    r"\b(binary messages?|misfits?|peculiar\w*|misbehav\w*|twofold)\b": "protobuf, mismatch, quirk, fault injection",
}
"""Each pattern with what to write instead."""

WORDS = {re.compile(pattern, re.IGNORECASE): advice for pattern, advice in PATTERNS.items()}


def find_wording(path: Path) -> list[str]:
    """Return a line for each place of a file that one of the patterns matches."""
    findings = []
    for line, text, is_opening in _read_texts(path):
        if is_opening and HEADLESS.match(text) and not text.endswith("?"):
            findings.append(f"{path}:{line}: {text[:80]!r} has no main clause; begin with a verb or a noun")
        for pattern, advice in WORDS.items():
            if match := pattern.search(text):
                findings.append(f"{path}:{line}: {match[0]!r}: {advice}")
    return findings


def _read_texts(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield line, text, and whether the text opens a docstring or comment."""
    source = path.read_text()
    if path.suffix != ".py":
        for number, line in enumerate(source.splitlines(), 1):
            # Code, paths and values of the wire keep their words.
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "", line), False
        return
    documented = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                documented.add(value.lineno)
                for offset, line in enumerate(value.value.splitlines()):
                    yield value.lineno + offset, re.sub(r"``[^`]*``|`[^`]*`", "", line).strip(), offset == 0
    previous = -2
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# "), token.start[0] != previous + 1
            previous = token.start[0]
        elif token.type == tokenize.STRING and token.start[0] not in documented and " " in token.string:
            yield token.start[0], token.string, False
