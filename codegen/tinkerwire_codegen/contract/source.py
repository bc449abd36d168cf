"""The YAML files of a contract as they are written, with the line of each node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from keyword import iskeyword
from pathlib import Path
from typing import Any

import yaml

ROOT = "openapi.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Json = dict[str, Any]


@dataclass(frozen=True)
class SourceFile:
    """One file: its content, and its tree of nodes, which have lines."""

    path: Path
    content: Json
    tree: yaml.Node

    def find_line(self, place: str) -> tuple[int, int]:
        """Return how much of a place such as #/paths//a/get the file has, and the line of this part."""
        node, rest, line = self.tree, place.removeprefix("#").removeprefix("/"), 0
        while rest:
            steps = [step for step in _list_steps(node) if rest == step[0] or rest.startswith(step[0] + "/")]
            if not steps:
                break
            # Keys may contain slashes.
            name, line, node = max(steps, key=lambda step: len(step[0]))
            rest = rest[len(name) + 1 :]
        return len(place) - len(rest), line + 1


@dataclass
class ContractFiles:
    """The root and the families of a contract, without the files that cannot be read, and what is wrong with those."""

    root: SourceFile | None = None
    families: dict[str, SourceFile] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[SourceFile]:
        """Return all files that can be read."""
        return [*filter(None, [self.root]), *self.families.values()]

    def locate(self, place: str) -> str:
        """Return the file and the line of a place, or of the part of it that the files have."""
        file, (_, line) = max(((file, file.find_line(place)) for file in self.files), key=lambda found: found[1][0])
        return f"{file.path}:{line}"


def read_files(folder: Path) -> ContractFiles:
    """Read the files of the contract in ``folder``; errors are collected, not raised."""
    files = ContractFiles()
    files.root = _read(folder / ROOT, files.errors)
    names = files.root.content.get("x-families", []) if files.root else []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        files.errors.append(
            f"{files.locate('#/x-families')}: #/x-families: must be a list of texts, got {names!r:.100}"
        )
        return files
    for index, name in enumerate(names):
        if not name.isidentifier() or iskeyword(name):
            place = files.locate(f"#/x-families/{index}")
            files.errors.append(f"{place}: x-families: {name!r} cannot be the name of a module; rename the family")
        elif name in names[:index]:
            files.errors.append(
                f"{files.locate(f'#/x-families/{index}')}: x-families: {name} is listed twice; keep one"
            )
        elif family := _read(folder / f"{name}.yaml", files.errors):
            files.families[name] = family
    return files


def _read(path: Path, errors: list[str]) -> SourceFile | None:
    try:
        loader = LOADER(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        errors.append(f"{path}: file does not exist; x-families in {ROOT} lists the files of a contract")
        return None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        errors.append(f"{path}:{line}: must be UTF-8, got the byte {error.object[error.start]:#04x}; convert the file")
        return None
    except (yaml.YAMLError, OSError) as error:
        errors.append(f"{path}: must be YAML: {error}")
        return None
    try:
        tree = loader.get_single_node()
        faults = list(_find_faults(tree, ()))
        errors += [f"{path}:{node.start_mark.line + 1}: {text}" for node, text in faults]
        if any(text.endswith(_ENDLESS) for _, text in faults):
            return None
        content = loader.construct_document(tree) if tree else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        errors.append(f"{path}:{mark.line + 1 if mark else 1}: must be YAML: {problem}")
        return None
    except (ValueError, RecursionError) as error:
        errors.append(f"{path}: must be YAML: {error}")
        return None
    finally:
        loader.dispose()
    if tree is None or not isinstance(content, dict):
        errors.append(f"{path}:1: must be a mapping, got {type(content).__name__}")
        return None
    return SourceFile(path, content, tree)


_ENDLESS = "contains itself; write it out"
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


def _find_faults(node: yaml.Node | None, owners: tuple[int, ...]) -> Iterator[tuple[yaml.Node, str]]:
    """Yield duplicate keys, keys that are not texts, and aliases of a node inside that node."""
    if node is None:
        return
    if id(node) in owners:
        yield node, f"an alias {_ENDLESS}"
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _find_faults(item, (*owners, id(node)))
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                pass
            elif key.tag != _TEXT or not isinstance(key.value, str):
                text = key.value if isinstance(key, yaml.ScalarNode) else "a list or a mapping"
                yield key, f"keys must be texts, got {text}; put it in quotes"
            elif key.value in lines:
                yield key, f"the key {key.value!r} is in line {lines[key.value]} already; keep one"
            else:
                lines[key.value] = key.start_mark.line + 1
            yield from _find_faults(value, (*owners, id(node)))


def _list_steps(node: yaml.Node) -> list[tuple[str, int, yaml.Node]]:
    """Return the name, the line and the node of each child."""
    if isinstance(node, yaml.MappingNode):
        return [(str(key.value), key.start_mark.line, value) for key, value in node.value]
    if isinstance(node, yaml.SequenceNode):
        return [(str(index), item.start_mark.line, item) for index, item in enumerate(node.value)]
    return []
