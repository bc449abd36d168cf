"""New endpoints in the style of the contract: names, tags, shared parameters and responses."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ...contract.rules import is_operation_name
from ..comparison import PROTOBUF
from ..drift.edits import Edit
from ..drift.operation_edits import name_operation
from ..drift.schema_builder import TODO
from .contract_files import ContractFiles
from .descriptions import REWORD, Descriptions
from .families import similarity, split_words

Json = dict[str, Any]
QUEUED = "#/components/responses/Queued"
DONE = "#/components/responses/Done"
INVALID = "#/components/responses/Invalid"
MODELS = 5
"""Number of similar operations that decide on the error statuses of a new one."""
FUTURE = "UntypedAPIFuture"


class OperationStyle:
    """Style of the operations of a contract, which new operations follow."""

    def __init__(self, files: ContractFiles, facts: Json, descriptions: Descriptions) -> None:
        """Initialize with the contract, and with the facts and the descriptions of the release."""
        self._files, self._facts, self._descriptions = files, facts, descriptions

    def restyle(self, edit: Edit, key: str) -> Edit:
        """Return the edit that adds an operation, in the style of the operations of its family."""
        fact = self._facts["endpoints"][key]
        place = next(place for place in edit.nodes if place[0] == "paths")
        node, path = edit.nodes.pop(place), self._reuse_path(place[1])
        name = self._name(fact)
        models = self._find_models(path, fact, edit.file)
        result = self._find_result(name)
        styled: Json = {
            "operationId": name,
            "tags": models[0].get("tags", ["TODO"]) if models else ["TODO"],
            "summary": self._summarize(fact, name, result),
            "description": TODO,
            "x-since": node["x-since"],
        }
        if result:
            styled["x-result"] = result
        parameters = self._reuse_parameters(path, node.get("parameters", []))
        if parameters:
            styled["parameters"] = parameters
        if "requestBody" in node:
            styled["requestBody"] = self._name_messages(node["requestBody"], fact)
        styled["responses"] = self._responses(node, fact, models)
        edit.nodes[("paths", path, place[2])] = styled
        return edit

    def _operations(self) -> list[tuple[str, str, str, Json]]:
        """List file, path, method and node of all operations."""
        return [
            (file, path, method, node)
            for file in self._files.families()
            for path, item in (self._files.contents[file].get("paths") or {}).items()
            for method, node in item.items()
        ]

    def _name(self, fact: Json) -> str:
        """Return the operationId: the last step of a short path, otherwise the name of the SDK's function."""
        steps = fact["path"].removeprefix("/api/v1/").split("/")
        used = {node["operationId"] for _, _, _, node in self._operations()}
        names = [steps[0]] if len(steps) == 1 else []
        names += [name for site in fact.get("sites", ()) for name in _function_names(site)]
        path_name = name_operation(fact)
        names += [path_name, *(f"{path_name}_{number}" for number in range(2, len(used) + 3))]
        return next(str(name) for name in names if is_operation_name(name) and name not in used)

    def _find_models(self, path: str, fact: Json, file: str) -> list[Json]:
        """Find the most similar operations: of the same kind of response, then of the same family, path and method."""
        kind, words, operations = _kind_of_response(fact["response"]), split_words(path), self._operations()
        scores = [
            (_kind_of_operation(node) == kind)
            + (other_file == file)
            + similarity(words, split_words(other_path))
            + 0.5 * (method == fact["method"].lower())
            + 0.5 * (("{" in path) == ("{" in other_path))
            + (bool(fact.get("request")) == ("requestBody" in node))
            for other_file, other_path, method, node in operations
        ]
        ranking = sorted(range(len(scores)), key=lambda index: -scores[index])
        return [operations[index][3] for index in ranking[:MODELS]]

    def _find_result(self, name: str) -> str | None:
        """Return the result of queued work, which the SDK awaits under the name of the operation."""
        for future in self._facts["futures"]:
            if future["request_type"].lower() == name.replace("_", ""):
                return str(future["result"]).removesuffix("#inmem")
        return None

    def _summarize(self, fact: Json, name: str, result: str | None) -> str:
        functions = [name, *[site.rpartition(".")[2] for site in fact.get("sites", ())]]
        texts = [text for text in map(self._descriptions.functions.get, functions) if text]
        text = f"{REWORD}{texts[0]}" if texts else TODO
        return f"{text.removesuffix('.')}; the result is {result}." if result else text

    def _reuse_path(self, path: str) -> str:
        """Take the names of variables from an existing path that starts alike."""
        steps = path.split("/")
        for position, step in enumerate(steps):
            if not step.startswith("{"):
                continue
            for _, other, _, _ in self._operations():
                other_steps = other.split("/")
                if len(other_steps) > position and _pattern(other_steps[: position + 1]) == _pattern(
                    steps[: position + 1]
                ):
                    steps[position] = other_steps[position]
                    break
        return "/".join(steps)

    def _reuse_parameters(self, path: str, parameters: list[Json]) -> list[Json]:
        """Replace parameters by those of the same name in operations with similar paths."""
        variables = re.findall(r"{(\w+)}", path)
        reused = []
        for parameter in parameters:
            name = variables.pop(0) if parameter["in"] == "path" else parameter["name"]
            shared = self._find_parameter(name, parameter["in"])
            reused.append(shared if shared and parameter["in"] == "path" else {**parameter, "name": name})
        return reused

    def _find_parameter(self, name: str, place: str) -> Json | None:
        for content in self._files.contents.values():
            for shared, node in ((content.get("components") or {}).get("parameters") or {}).items():
                if node.get("name") == name and node.get("in") == place:
                    return {"$ref": f"#/components/parameters/{shared}"}
        for _, _, _, node in self._operations():
            for parameter in node.get("parameters", []):
                if parameter.get("name") == name and parameter.get("in") == place:
                    return {key: value for key, value in parameter.items() if not key.startswith("x-since")}
        return None

    def _name_messages(self, body: Json, fact: Json) -> Json:
        """Name the message of a protobuf body: that of the type of the request."""
        request = str(fact.get("request")).removesuffix("#inmem")
        for media_type, media in body.get("content", {}).items():
            if media_type == PROTOBUF:
                media["schema"] = {**media["schema"], "x-protobuf-messages": [{"message": request}]}
        return body

    def _responses(self, node: Json, fact: Json, models: list[Json]) -> Json:
        responses: Json = {}
        if fact["response"] == FUTURE and self._has_shared_response(QUEUED):
            responses["200"] = {"$ref": QUEUED}
        elif fact["response"] == "null" and self._has_shared_response(DONE):
            responses |= {"200": {"$ref": DONE}, "204": {"$ref": DONE}}
        else:
            responses["200"] = node["responses"]["200"]
        # An error status follows most of the similar operations; it must be a shared response.
        counts = Counter(
            (status, response.get("$ref", ""))
            for model in models
            for status, response in model.get("responses", {}).items()
            if not status.startswith(("2", "3"))
        )
        has_input = "requestBody" in node or _has_query(node)
        for (status, target), count in counts.items():
            if 2 * count > len(models) and self._has_shared_response(target) and (status != "422" or has_input):
                responses.setdefault(status, {"$ref": target})
        for status in ("422", "default"):
            response = node["responses"].get(status, {"$ref": INVALID} if has_input and status == "422" else {})
            if self._has_shared_response(response.get("$ref", "")):
                responses.setdefault(status, response)
        if "{" not in fact["path"] and "requestBody" not in node:
            responses.pop("404", None)
        statuses = sorted(status for status in responses if status != "default")
        ordered = {status: responses[status] for status in statuses}
        return {**ordered, **({"default": responses["default"]} if "default" in responses else {})}

    def _has_shared_response(self, target: str) -> bool:
        name = target.rpartition("/")[2]
        return any(
            name in ((content.get("components") or {}).get("responses") or {})
            for content in self._files.contents.values()
        )


def _function_names(site: str) -> list[str]:
    """Return the names of the functions around a call that have two words or more, outermost first."""
    names = [
        re.sub(r"_(submit|async)$", "", part).strip("_") for part in site.partition(":")[2].split(".") if part.islower()
    ]
    return [name for name in names if "_" in name and name != "send_request"]


def _kind_of_response(response: str) -> str:
    return "queued" if response == FUTURE else "none" if response == "null" else "json"


def _kind_of_operation(node: Json) -> str:
    response = node.get("responses", {}).get("200", {})
    if response.get("$ref") in (QUEUED, DONE):
        return "queued" if response["$ref"] == QUEUED else "none"
    return "json" if "content" in response else "none"


def _has_query(node: Json) -> bool:
    return any(parameter.get("in") == "query" for parameter in node.get("parameters", []))


def _pattern(steps: list[str]) -> list[str]:
    return ["{}" if step.startswith("{") else step for step in steps]
