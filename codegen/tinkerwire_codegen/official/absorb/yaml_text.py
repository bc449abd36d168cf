"""Edits of a YAML file in place: only the lines of changed nodes change; comments, order and style stay."""

from __future__ import annotations

import difflib
import json
from typing import Any

import yaml

from ...contract.source import LOADER
from .yaml_style import WIDTH, Place, is_block, render_block, render_flow, render_item, render_pair, render_value

Replacement = tuple[int, int, str]


def rewrite_yaml(text: str, content: Any) -> str:
    """Return ``text`` with the nodes that differ from ``content`` replaced, added or removed.

    Raises:
        ValueError: the edited text does not have the content, because the file uses YAML that cannot be edited.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    editor = _Editor(text)
    if root is not None:
        editor.update(root, yaml.load(text, Loader=LOADER), content, (), 0)
    edited = editor.apply()
    try:
        is_right = yaml.load(edited, Loader=LOADER) == content
    except yaml.YAMLError:
        is_right = False
    if not is_right:
        raise ValueError("the YAML cannot be edited in place; write it without anchors, tags and empty collections")
    return edited


class _Editor:
    def __init__(self, text: str) -> None:
        self._text = text
        self._replacements: list[Replacement] = []

    def apply(self) -> str:
        """Return the text with all replacements."""
        text = self._text
        deleted = [(start, end) for start, end, new in self._replacements if not new]
        self._replacements = [self._move_insertion(item, deleted) for item in self._replacements]
        # Insertions at one place come in reverse, so that they end up in order.
        ordered = sorted(enumerate(self._replacements), key=lambda item: (item[1][:2], item[0]), reverse=True)
        for _, (start, end, new) in ordered:
            text = text[:start] + new + text[end:]
        return text

    def _move_insertion(self, replacement: Replacement, deleted: list[tuple[int, int]]) -> Replacement:
        """Move an insertion behind deleted lines to the end of the line above them."""
        position, end, new = replacement
        moved = position == end
        while moved:
            moved = False
            for start, stop in deleted:
                if start <= position < stop and position:
                    position, moved = start - 1, True
        return (position, position, new) if replacement[0] == replacement[1] else replacement

    def update(self, node: yaml.Node, old: Any, new: Any, place: Place, value_start: int) -> None:
        """Replace what differs; ``value_start`` is the place behind the key or dash of the node."""
        if _is_equal(old, new):
            return
        is_kept = type(old) is type(new) and bool(new) and isinstance(node, yaml.CollectionNode)
        if is_kept and not node.flow_style:  # type: ignore[attr-defined]
            if isinstance(node, yaml.MappingNode):
                self._update_mapping(node, old, new, place)
            elif isinstance(node, yaml.SequenceNode):
                self._update_list(node, old, new, place)
            return
        flow = self._render_flow(node, old, new)
        if is_kept and not is_block(new, place):
            start = node.start_mark.index
            if self._column(start) + len(flow) + len(self._line_rest(node.end_mark.index)) <= WIDTH:
                self._replace(start, node.end_mark.index, flow)
                return
            if isinstance(node, yaml.SequenceNode) and not any(isinstance(item, dict) for item in new):
                self._update_long_list(node, old, new, flow)
                return
        line_indent = self._indent(value_start)
        rendered = render_value(new, place, line_indent + 2, self._column(value_start))
        if self._text[value_start - 1 : value_start] == "-" and rendered.startswith("\n"):
            rendered = " " + rendered.lstrip()
        self._replace(value_start, self._end(node), rendered)

    def _update_mapping(self, node: yaml.MappingNode, old: Any, new: Any, place: Place) -> None:
        indent = node.value[0][0].start_mark.column
        pairs = {_key(key_node): (key_node, value_node) for key_node, value_node in node.value}
        kept = [key for key in pairs if key in new]
        for key, (key_node, value_node) in pairs.items():
            if key in new:
                behind = self._text.index(":", key_node.end_mark.index) + 1
                self.update(value_node, old[key], new[key], (*place, str(key)), behind)
            else:
                self._delete_lines(key_node.start_mark.index, self._end(value_node), is_first=key == next(iter(pairs)))
        position: int | None = None
        for key in new:
            if key in pairs:
                position = self._end(pairs[key][1])
                continue
            if position is None:
                # A new first key goes before the first one that stays.
                start = pairs[kept[0]][0].start_mark.index if kept else node.start_mark.index
                self._replace(start, start, render_pair(key, new[key], place, indent) + "\n" + " " * indent)
            else:
                position = self._line_end(position)
                self._replace(position, position, "\n" + render_block({key: new[key]}, place, indent))

    def _update_list(self, node: yaml.SequenceNode, old: Any, new: Any, place: Place) -> None:
        indent = node.start_mark.column
        item_place = (*place, "-")
        matcher = difflib.SequenceMatcher(
            None, [_identity(item) for item in old], [_identity(item) for item in new], False
        )
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                pairs = list(zip(range(i1, i2), range(j1, j2), strict=True))
            else:
                pairs = list(zip(range(i1, i2), range(j1, j2), strict=False))
                for index in range(i1 + len(pairs), i2):
                    item = node.value[index]
                    self._delete_lines(self._dash(item), self._end(item), is_first=False)
                for index in range(j1 + len(pairs), j2):
                    at = i1 + len(pairs)
                    if at == 0:
                        self._replace(
                            node.start_mark.index,
                            node.start_mark.index,
                            render_item(new[index], place, indent) + "\n" + " " * indent,
                        )
                    else:
                        position = self._line_end(self._end(node.value[at - 1]))
                        self._replace(position, position, "\n" + " " * indent + render_item(new[index], place, indent))
            for i, j in pairs:
                item = node.value[i]
                self.update(item, old[i], new[j], item_place, self._dash(item) + 1)

    def _render_flow(self, node: yaml.Node, old: Any, new: Any) -> str:
        """Render a node on one line; parts that do not change keep their text."""
        if _is_equal(old, new) and getattr(node, "flow_style", True) and "\n" not in self._slice(node):
            return self._slice(node)
        if isinstance(node, yaml.MappingNode) and isinstance(new, dict) and isinstance(old, dict):
            known = {_key(key): (key, value) for key, value in node.value}
            parts = [
                f"{self._slice(known[key][0])}: {self._render_flow(known[key][1], old[key], item)}"
                if key in known
                else f"{render_flow(key)}: {render_flow(item)}"
                for key, item in new.items()
            ]
            return "{" + ", ".join(parts) + "}"
        if isinstance(node, yaml.SequenceNode) and isinstance(new, list) and isinstance(old, list):
            texts = {
                _canonical(value): self._render_flow(item, value, value)
                for item, value in zip(node.value, old, strict=True)
            }
            return "[" + ", ".join(texts.get(_canonical(item)) or render_flow(item) for item in new) + "]"
        return render_flow(new)

    def _update_long_list(self, node: yaml.SequenceNode, old: Any, new: Any, flow: str) -> None:
        start, end = node.start_mark.index, node.end_mark.index
        if not old or new[: len(old)] != old:
            self._replace(start, end, self._wrap(flow, start))
            return
        # Items at the end leave the lines above as they are.
        column, pad = self._column(end) - 1, " " * (self._indent(start) + 2)
        text = ""
        for item in map(render_flow, new[len(old) :]):
            is_fitting = column + len(item) + 3 <= WIDTH
            text += f", {item}" if is_fitting else f",\n{pad}{item}"
            column = column + len(item) + 2 if is_fitting else len(pad) + len(item)
        self._replace(self._end(node.value[-1]), self._end(node.value[-1]), text)

    def _wrap(self, flow: str, start: int) -> str:
        """Break a list on one line into lines that fit."""
        indent, column = self._indent(start) + 2, self._column(start)
        lines: list[str] = []
        line = ""
        for part in flow.split(", "):
            width = WIDTH - (column if not lines else indent)
            if line and len(line) + len(part) + 2 >= width:
                lines.append(line + ",")
                line = part
            else:
                line = f"{line}, {part}" if line else part
        return ("\n" + " " * indent).join([*lines, line])

    def _delete_lines(self, start: int, end: int, *, is_first: bool) -> None:
        """Delete an entry with its lines, and the comments directly above."""
        line = self._text.rfind("\n", 0, start) + 1
        end = self._line_end(end)
        if self._text[line:start].strip():
            # The first key behind a dash: the next line takes its place.
            following = end + 1
            while following < len(self._text) and self._text[following] == " ":
                following += 1
            self._replace(start, following, "")
            return
        while not is_first:
            above = self._text.rfind("\n", 0, line - 1) + 1
            if not self._text[above:line].strip().startswith("#"):
                break
            line = above
        self._replace(line, min(end + 1, len(self._text)), "")

    def _replace(self, start: int, end: int, new: str) -> None:
        self._replacements.append((start, end, new))

    def _slice(self, node: yaml.Node) -> str:
        return self._text[node.start_mark.index : node.end_mark.index]

    def _end(self, node: yaml.Node) -> int:
        """Return the end of the content of a node, without line ends and comments behind it."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            return self._end(last[1] if isinstance(last, tuple) else last)
        return len(self._text[: node.end_mark.index].rstrip()) if self._slice(node).strip() else node.end_mark.index

    def _dash(self, item: yaml.Node) -> int:
        return self._text.rindex("-", 0, item.start_mark.index)

    def _line_end(self, position: int) -> int:
        end = self._text.find("\n", position)
        return len(self._text) if end < 0 else end

    def _line_rest(self, position: int) -> str:
        return self._text[position : self._line_end(position)]

    def _column(self, position: int) -> int:
        return position - self._text.rfind("\n", 0, position) - 1

    def _indent(self, position: int) -> int:
        """Return the column of the key on the line of a position; keys behind dashes count from the key."""
        start = self._text.rfind("\n", 0, position) + 1
        line = self._text[start : self._line_end(position)]
        marks = " -" if ":" in line[: position - start] else " "
        return len(line) - len(line.lstrip(marks))


def _key(node: yaml.Node) -> Any:
    return yaml.SafeLoader("").construct_object(node, deep=True)


def _identity(value: Any) -> str:
    """Return text that is equal for equal items; parameters and references are known by name."""
    if isinstance(value, dict):
        for key in ("name", "$ref"):
            if isinstance(value.get(key), str):
                return f"{key} {value[key]} {value.get('in')} {value.get('x-since')}"
    return json.dumps(value, default=str)


def _is_equal(old: Any, new: Any) -> bool:
    return _canonical(old) == _canonical(new)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
