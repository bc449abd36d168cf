"""The contract as of an earlier wire version: everything later is dropped from its files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import yaml

from tinkerwire_base.conversion.versioning import SHAPE, parse_version
from tinkerwire_codegen.contract.protobuf import FILE
from tinkerwire_codegen.official.absorb.yaml_text import rewrite_yaml

Json = dict[str, Any]
SCHEMAS = "#/components/schemas/"


def truncate_contract(source: Path, target: Path, version: str) -> None:
    """Write the contract in ``source`` as it would have been at ``version`` into ``target``."""
    target.mkdir(parents=True, exist_ok=True)
    now = parse_version(version)
    files = {file: yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(source.glob("*.yaml"))}
    contents = {file: _truncate(content, now) for file, content in files.items()}
    _drop_dead_references(contents)
    for file, content in contents.items():
        info = content.get("info")
        if info:
            info["version"] = version
            info["x-versions"] = [known for known in info["x-versions"] if parse_version(known) <= now]
        (target / file.name).write_text(rewrite_yaml(file.read_text(encoding="utf-8"), content), encoding="utf-8")
    if (source / FILE).exists():
        text = (source / FILE).read_text(encoding="utf-8")
        (target / FILE).write_text(_truncate_proto(text, now), encoding="utf-8")
    for file in source.glob("*.md"):
        shutil.copy(file, target)


def _is_later(version: Any, now: tuple[int, ...]) -> bool:
    return version is not None and parse_version(version) > now


def _truncate(node: Any, now: tuple[int, ...]) -> Any:
    if isinstance(node, list):
        return [_truncate(item, now) for item in node if not _is_new(item, now)]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("properties"), dict) and isinstance(node.get("required", []), list):
        node = _with_earlier_required(node, now)
    node = _undo_history(node, now)
    kept = {key: _truncate(item, now) for key, item in node.items() if not _is_new(item, now)}
    if _is_later(kept.get("x-until"), now):
        del kept["x-until"]
    if isinstance(kept.get("x-absent"), list):
        _truncate_gaps(kept, now)
    if isinstance(kept.get("enum"), list):
        since, until = kept.get("x-enum-since", {}), kept.get("x-enum-until", {})
        kept["enum"] = [value for value in kept["enum"] if not _is_later(since.get(value), now)]
        for key, table in (("x-enum-since", since), ("x-enum-until", until)):
            table = {value: mark for value, mark in table.items() if not _is_later(mark, now)}  # noqa: PLW2901
            kept.pop(key, None)
            if table:
                kept[key] = table
        kept = {key: kept[key] for key in node if key in kept}
    if "x-essential" in kept and "properties" in kept:
        kept["x-essential"] = [field for field in kept["x-essential"] if field in kept["properties"]]
    return {
        key: item
        for key, item in kept.items()
        if not (
            item in ({}, []) and node[key] and key in ("content", "headers", "parameters", "x-absent", "properties")
        )
        and not (key.startswith("/") and item == {})
    }


def _is_new(node: Any, now: tuple[int, ...]) -> bool:
    return isinstance(node, dict) and _is_later(node.get("x-since"), now)


def _truncate_gaps(node: Json, now: tuple[int, ...]) -> None:
    gaps = [gap for gap in node["x-absent"] if not _is_later(gap["since"], now)]
    node["x-absent"] = [gap for gap in gaps if not _is_later(gap["until"], now)]
    if len(gaps) > len(node["x-absent"]):
        node["x-until"] = gaps[-1]["since"]


def _next_form(node: Json, now: tuple[int, ...]) -> Json | None:
    entries = node.get("x-history")
    if not isinstance(entries, list):
        return None
    later = sorted((e for e in entries if _is_later(e["until"], now)), key=lambda e: parse_version(e["until"]))
    return later[0] if later else None


def _with_earlier_required(node: Json, now: tuple[int, ...]) -> Json:
    required = list(node.get("required", []))
    for name, detail in node["properties"].items():
        form = _next_form(detail, now) if isinstance(detail, dict) else None
        was = None if form is None else form.get("required")
        if was is True and name not in required:
            required.append(name)
        elif (was is False or _is_new(detail, now)) and name in required:
            required.remove(name)
    if required == node.get("required", []):
        return node
    changed = {**node, "required": required}
    if not required:
        del changed["required"]
    return changed


def _undo_history(node: Json, now: tuple[int, ...]) -> Json:
    form = _next_form(node, now)
    if form is None:
        return node
    earlier = form.get("schema", {})
    is_whole = bool(SHAPE & earlier.keys())
    kept = {key: item for key, item in node.items() if not is_whole or key == "description" or key.startswith("x-")}
    kept = {key: earlier.get(key, item) for key, item in kept.items()} | earlier
    entries = [entry for entry in node["x-history"] if not _is_later(entry["until"], now)]
    kept.pop("x-history")
    return {**kept, "x-history": entries} if entries else kept


def _drop_dead_references(contents: dict[Path, Json]) -> None:
    """Remove references to what is gone: union members, mappings, shared responses and parameters."""
    while True:
        known = {
            f"#/components/{section}/{name}"
            for content in contents.values()
            for section, nodes in content.get("components", {}).items()
            for name, node in nodes.items()
            if node.get("anyOf") != []
        }
        dropped = [_drop(content, known) for content in contents.values()]
        if not any(dropped):
            break
    for content in contents.values():
        schemas = content.get("components", {}).get("schemas", {})
        for name in [name for name, schema in schemas.items() if schema.get("anyOf") == []]:
            del schemas[name]


def _drop(node: Any, known: set[str]) -> bool:
    """Remove dead references below a node; report whether there were any."""
    dropped = False
    if isinstance(node, list):
        kept = [item for item in node if not _is_dead(item, known)]
        dropped = len(kept) < len(node)
        node[:] = kept
        return any([dropped, *[_drop(item, known) for item in node]])
    if not isinstance(node, dict):
        return False
    dead = [key for key, item in node.items() if _is_dead(item, known)]
    for key in dead:
        del node[key]
    mapping = node.get("discriminator", {}).get("mapping") if isinstance(node.get("discriminator"), dict) else None
    if mapping:
        node["discriminator"]["mapping"] = {tag: to for tag, to in mapping.items() if to in known}
    return any([bool(dead), *[_drop(item, known) for item in node.values()]])


def _is_dead(item: Any, known: set[str]) -> bool:
    return (
        isinstance(item, dict) and str(item.get("$ref", "")).startswith("#/components/") and item["$ref"] not in known
    )


_SINCE = re.compile(r"since: ([\d.]+)")
_UNTIL = re.compile(r"(?:; )?until: ([\d.]+)")
_WAS = re.compile(r"(?:; )?was (\S+) until ([\d.]+)")


def _truncate_proto(text: str, now: tuple[int, ...]) -> str:
    """Drop later elements with the comments above them, and later marks."""
    lines: list[str] = []
    depth_to_skip = 0
    for line in text.splitlines():
        code, _, comment = line.partition("  // ")
        opens, closes = code.count("{"), code.count("}")
        if depth_to_skip:
            depth_to_skip += opens - closes
            continue
        since = _SINCE.search(comment)
        if since and _is_later(since[1], now):
            while lines and lines[-1].strip().startswith("//"):
                lines.pop()
            if opens and lines and not lines[-1]:
                lines.pop()
            depth_to_skip = opens - closes
            continue
        was = _WAS.search(comment)
        if was and _is_later(was[2], now):
            code = re.sub(r"^(\s*(?:optional |repeated )?)[\w.]+", rf"\g<1>{was[1]}", code)
            comment = comment.replace(was[0], "")
        until = _UNTIL.search(comment)
        if until and _is_later(until[1], now):
            comment = comment.replace(until[0], "")
        if line.startswith("//") or "  // " not in line:
            lines.append(line)
        else:
            lines.append(f"{code}  // {comment}" if comment else code)
    return "\n".join(lines) + "\n"
