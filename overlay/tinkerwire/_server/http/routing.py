"""From method and path to an operation of the contract."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

import attrs

from tinkerwire._server.http.openapi import Json
from tinkerwire._server.http.responses import HttpError
from tinkerwire_base.call import Operation
from tinkerwire_generated.operations import OPERATIONS

_PARAMETER = re.compile(r"\{(\w+)\}")


@attrs.frozen
class Route:
    """One path template of the contract and the operations on it, by method."""

    template: str
    pattern: re.Pattern[str]
    operations: Mapping[str, Operation]

    @property
    def fixed_parts(self) -> int:
        """How many parts of the path are literal: the more there are, the better a match tells."""
        return sum("{" not in part for part in self.template.split("/"))


class Router:
    """Finds operations of one wire version.

    Args:
        document: the contract of that version. Path parameters that it marks with ``x-multi-segment`` may
            hold slashes.
    """

    def __init__(self, document: Json) -> None:
        self._version = document["info"]["version"]
        routes = [_route(template, item) for template, item in document["paths"].items()]
        self._routes = sorted(routes, key=lambda route: -route.fixed_parts)

    def find(self, method: str, path: str) -> tuple[Operation, dict[str, str]]:
        """The operation, and its path parameters, decoded.

        Raises:
            Refusal: 404 for a path that does not exist, 405 with Allow for a method that the path does not take.
        """
        allowed: set[str] = set()
        for route in self._routes:
            match = route.pattern.fullmatch(path)
            if match is None:
                continue
            if method in route.operations:
                values = {name: unquote(value) for name, value in match.groupdict().items()}
                return route.operations[method], values
            allowed |= route.operations.keys()
        if allowed:
            methods = ", ".join(sorted(allowed))
            raise HttpError(405, f"{path} takes {methods}, not {method}", {"allow": methods})
        raise HttpError(404, f"{method} {path} does not exist here")


def _route(template: str, item: Json) -> Route:
    operations = {method.upper(): operation for method, operation in item.items()}
    many = {
        parameter["name"]
        for operation in item.values()
        for parameter in operation.get("parameters", [])
        if parameter.get("x-multi-segment")
    }
    parts = _PARAMETER.split(template)
    pattern = "".join(
        (f"(?P<{part}>.+)" if part in many else f"(?P<{part}>[^/]+)") if odd % 2 else re.escape(part)
        for odd, part in enumerate(parts)
    )
    rows = {method: OPERATIONS[operation["operationId"]] for method, operation in operations.items()}
    return Route(template, re.compile(pattern), rows)
