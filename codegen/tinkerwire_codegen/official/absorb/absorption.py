"""Absorption of one release into a contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinkerwire_base.conversion.versioning import project

from ...contract.bundle import load
from ...contract.protobuf import FILE
from ..comparison import PROTOBUF, Difference, compare_facts
from ..drift.edits import Edit, EditBuilder
from ..drift.protobuf import collect_release_messages, compare_messages, read_contract_messages
from ..drift.schema_builder import TODO, to_camel_case
from ..known_differences import exclude_known
from .contract_files import ContractFiles
from .descriptions import Descriptions
from .families import FamilyChooser
from .operations import OperationStyle
from .proto_text import ProtoText

Json = dict[str, Any]
MAX_ROUNDS = 5
SCHEMAS = "#/components/schemas/"
RETRIEVE = "POST /api/v1/retrieve_future"


@dataclass
class Absorption:
    """The result: the differences that were recorded, and those that a person must decide."""

    version: str
    recorded: list[Difference] = field(default_factory=list)
    open: list[Difference] = field(default_factory=list)


def absorb_facts(folder: Path, facts: Json, descriptions: Descriptions, version: str) -> Absorption:
    """Record the facts of a release in the contract in ``folder``, as changes of ``version``."""
    result = Absorption(version)
    files = ContractFiles(folder, version)
    files.check_version()
    files.add_version()
    files.write()
    for _ in range(MAX_ROUNDS):
        differences = find_differences(folder, facts, version)
        done = _Recorder(ContractFiles(folder, version), facts, descriptions).record(differences)
        result.recorded += [difference for difference in done if difference not in result.recorded]
        result.open = [difference for difference in differences if difference not in done]
        if not done:
            break
    _absorb_messages(result, folder, facts, version)
    return result


def find_differences(folder: Path, facts: Json, version: str) -> list[Difference]:
    """Find what the contract does not have yet."""
    return exclude_known(compare_facts(project(load(folder), version), facts), folder)


class _Recorder:
    def __init__(self, files: ContractFiles, facts: Json, descriptions: Descriptions) -> None:
        self._files, self._facts, self._descriptions = files, facts, descriptions
        self._families = FamilyChooser(files, facts)
        self._style = OperationStyle(files, facts, descriptions)

    def record(self, differences: list[Difference]) -> list[Difference]:
        """Write the edits for differences, and return those that have one."""
        done = []
        for difference in _order(differences):
            edit = self._build(difference)
            if edit.nodes:
                self._files.apply(edit)
                done.append(difference)
        self._files.complete_mappings()
        self._files.write()
        return done

    def _build(self, difference: Difference) -> Edit:
        if difference.kind == "protobuf result":
            return self._build_protobuf_result(difference)
        edit = self._revive(difference) or EditBuilder(self._files.source, self._facts).build(difference)
        if not edit.nodes:
            return edit
        self._rename(edit)
        edit.file = edit.file or self._families.choose(difference, edit)
        is_new = not any("x-absent" in node for node in edit.nodes.values() if isinstance(node, dict))
        if difference.kind == "endpoint" and difference.theirs is not None and is_new:
            edit = self._style.restyle(edit, difference.theirs)
        self._describe(difference, edit)
        return edit

    def _revive(self, difference: Difference) -> Edit | None:
        """Return the edit for an addition that the contract had before: the versions without it become a gap."""
        if difference.ours is not None or difference.kind not in ("type", "field", "endpoint"):
            return None
        file, place, node = self._files.find_retired(difference)
        if not file:
            return None
        gaps = [*node.get("x-absent", []), {"since": node["x-until"], "until": self._files.version}]
        return Edit(file, {place: {key: item for key, item in node.items() if key != "x-until"} | {"x-absent": gaps}})

    def _rename(self, edit: Edit) -> None:
        """Use the contract's names of types: those that it has already, and new ones without the underscore."""
        for place in list(edit.nodes):
            node = self._with_names(edit.nodes.pop(place))
            if place[:2] == ("components", "schemas") and place[2].startswith("_") and len(place) == 3:
                name = self._name(place[2])
                node = {**node, "x-sdk-name": place[2]} if name != place[2] else node
                place = (*place[:2], name)  # noqa: PLW2901
            edit.nodes[place] = node

    def _name(self, sdk_name: str) -> str:
        """Return the contract's name of a type; the name of the module distinguishes a private type of a used name."""
        file, place, _ = self._files.source.find_schema(sdk_name)
        if file or not sdk_name.startswith("_"):
            return place[-1]
        name = sdk_name.lstrip("_")
        if self._files.has_schema(name):
            module = self._facts["types"].get(sdk_name, {}).get("module", "sdk")
            name = to_camel_case(module.rpartition(".")[2].lstrip("_")) + name
        return name

    def _with_names(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self._with_names(item) for item in node]
        if not isinstance(node, dict):
            return node
        renamed = {key: self._with_names(item) for key, item in node.items()}
        target = renamed.get("$ref")
        if isinstance(target, str) and target.startswith(SCHEMAS):
            renamed["$ref"] = SCHEMAS + self._name(target.removeprefix(SCHEMAS))
        return renamed

    def _describe(self, difference: Difference, edit: Edit) -> None:
        """Put the descriptions of the release in the place of missing ones."""
        for place, node in edit.nodes.items():
            if not isinstance(node, dict):
                continue
            if place[:2] == ("components", "schemas") and len(place) == 3:
                _replace(node, self._descriptions.describe_type(place[2]))
                for name, detail in node.get("properties", {}).items():
                    _replace(detail, self._descriptions.describe_field(place[2], name))
            elif len(place) == 5 and place[3] == "properties":
                _replace(node, self._descriptions.describe_field(place[2], place[4]))

    def _build_protobuf_result(self, difference: Difference) -> Edit:
        """List or end a message among the results, which are fetched as protobuf."""
        file, place, node = self._files.source.find_operation(RETRIEVE)
        media = node.get("responses", {}).get("200", {}).get("content", {}).get(PROTOBUF, {})
        schema = media.get("schema", {"type": "string", "format": "binary"})
        messages = schema.get("x-protobuf-messages", [])
        if difference.theirs is not None:
            messages = [*messages, {"message": difference.theirs, "x-since": self._files.version}]
        else:
            end = {"x-until": self._files.version}
            messages = [{**item, **end} if item["message"] == difference.ours else item for item in messages]
        media = media or {"x-since": self._files.version}
        changed = {**media, "schema": {**schema, "x-protobuf-messages": messages}}
        return Edit(file, {(*place, "responses", "200", "content", PROTOBUF): changed})


def _order(differences: list[Difference]) -> Iterator[Difference]:
    """Yield additions of types first, because other edits refer to them; of two changes of one field, the first."""
    optional = {difference.where for difference in differences if difference.kind == "required"}
    for is_first in (True, False):
        for difference in differences:
            is_repeated = difference.kind == "default" and difference.where in optional
            is_new = (difference.kind, difference.where) in (("type", "types"), ("endpoint", "endpoints"))
            if is_new == is_first and not is_repeated:
                yield difference


def _replace(node: Json, text: str) -> None:
    if node.get("description") == TODO:
        node["description"] = text


def _absorb_messages(result: Absorption, folder: Path, facts: Json, version: str) -> None:
    """Record the changes of protobuf messages; each must compile to the messages of the release."""
    theirs = collect_release_messages(facts["proto"])
    file = folder / FILE
    if not file.exists():
        return
    proto = ProtoText(file.read_text(encoding="utf-8"), version, _describe_messages(folder))
    differences = compare_messages(read_contract_messages(folder, version), theirs)
    result.recorded += [difference for difference in differences if proto.record(difference, theirs)]
    file.write_text(proto.render(), encoding="utf-8", newline="\n")
    result.open += compare_messages(read_contract_messages(folder, version), theirs)


def _describe_messages(folder: Path) -> Callable[[str, str], str]:
    schemas = load(folder)["components"]["schemas"]

    def describe(owner: str, name: str) -> str:
        schema = schemas.get(owner, {})
        node = schema.get("properties", {}).get(name, {}) if name else schema
        return " ".join(node.get("description", TODO).split())

    return describe
