"""Routing: finds the operation of a method and a path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

import attrs

from tinkerwire._server.http.openapi import Document
from tinkerwire._server.http.responses import HttpError
from tinkerwire_base.call import Operation
from tinkerwire_generated.operations import OPERATIONS

OPEN_PATHS = frozenset({OPERATIONS["healthz"].path, OPERATIONS["auth_config"].path})
"""Paths that need no API key."""
_PARAMETER = re.compile(r"\{(\w+)\}")


@attrs.frozen
class Route:
    """One path template of the contract, and its operations by method."""

    template: str
    pattern: re.Pattern[str]
    operations: Mapping[str, Operation]

    @property
    def literal_parts(self) -> int:
        """Number of path segments without a parameter; a match with more literal segments is more specific."""
        return sum("{" not in part for part in self.template.split("/"))


class Router:
    """The routes of one wire version.

    Args:
        document: the contract of that version. A path parameter with ``x-multi-segment`` may contain slashes.
    """

    def __init__(self, document: Document) -> None:
        self._version = document["info"]["version"]
        routes = [_create_route(template, item) for template, item in document["paths"].items()]
        self._routes = sorted(routes, key=lambda route: -route.literal_parts)
        self._literal = {route.template: route for route in routes if "{" not in route.template}

    def find(self, method: str, path: str) -> tuple[Operation, dict[str, str]]:
        """Return the operation and the decoded path parameters.

        Raises:
            HttpError: 404 for an unknown path, 405 with Allow for a method that the path does not support.
        """
        literal = self._literal.get(path)
        if literal is not None and method in literal.operations:
            return literal.operations[method], {}
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
            raise HttpError(405, f"{path} must be requested with {methods}, got {method}", {"allow": methods})
        raise HttpError(404, f"{method} {path} is not an endpoint of this server")


def _create_route(template: str, item: Document) -> Route:
    operations = {method.upper(): operation for method, operation in item.items()}
    multi_segment = {
        parameter["name"]
        for operation in item.values()
        for parameter in operation.get("parameters", [])
        if parameter.get("x-multi-segment")
    }
    # The split alternates between literal parts and names of parameters.
    pattern = "".join(
        (f"(?P<{part}>.+)" if part in multi_segment else f"(?P<{part}>[^/]+)") if index % 2 else re.escape(part)
        for index, part in enumerate(_PARAMETER.split(template))
    )
    by_method = {method: OPERATIONS[operation["operationId"]] for method, operation in operations.items()}
    return Route(template, re.compile(pattern), by_method)
