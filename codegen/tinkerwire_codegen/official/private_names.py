"""Types of a release that only changed their private names; the names are not on the wire."""

from __future__ import annotations

import json
import re
from typing import Any

from .comparison import compare_type

Json = dict[str, Any]


def align_private_names(document: Json, facts: Json) -> Json:
    """Return the facts with the contract's names for private types that a release has only renamed."""
    ours = {node.get("x-sdk-name", name): node for name, node in document["components"]["schemas"].items()}
    gone = [name for name in ours if name.startswith("_") and name not in facts["types"]]
    new = [name for name in facts["types"] if name.startswith("_") and name not in ours]
    for old in gone:
        for name in new:
            renamed = _rename(facts, name, old)
            if not compare_type(document, renamed, old):
                new.remove(name)
                facts = renamed
                break
    return facts


def _rename(facts: Json, old: str, new: str) -> Json:
    renamed: Json = json.loads(re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, json.dumps(facts)))
    return renamed
