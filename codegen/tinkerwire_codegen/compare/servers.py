"""Changes of the addresses of servers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from .change import Change

Json = dict[str, Any]

MAX_URLS = 64


def compare_servers(key: str, old: Json, new: Json, before: Json, after: Json) -> Iterator[Change]:
    """Yield the changes of the addresses of one operation."""
    old_urls, new_urls = list_urls(old, before), list_urls(new, after)
    old_paths, new_paths = _paths(old_urls), _paths(new_urls)
    for path in sorted(old_paths - new_paths):
        others = ", ".join(sorted(new_paths))
        yield Change(
            "breaking", "request", "servers", f"no server has the path {path} now; servers have {others}", [key]
        )
    for path in sorted(new_paths - old_paths):
        yield Change("safe", "request", "servers", f"servers have the path {path} now", [key])
    named = [{url for url in urls if urlsplit(url).netloc} for urls in (old_urls, new_urls)]
    if named[0] and named[1]:
        for url in sorted(named[0] - named[1]):
            if urlsplit(url).path.rstrip("/") in {path.rstrip("/") for path in new_paths}:
                yield Change("risky", "request", "servers", f"the server {url} is no longer listed", [key])
        for url in sorted(named[1] - named[0]):
            if urlsplit(url).path.rstrip("/") in {path.rstrip("/") for path in old_paths}:
                yield Change("safe", "request", "servers", f"the server {url} is listed now", [key])


def list_urls(document: Json, operation: Json) -> set[str]:
    """Return the addresses of an operation, with all values of their variables."""
    servers = operation.get("servers") or document.get("servers") or [{"url": "/"}]
    return {url.rstrip("/") or "/" for server in servers for url in _expand(server)}


def common_path(document: Json, operation: Json) -> str:
    """Return the path of all servers of an operation, or an empty text if they have several."""
    paths = _paths(list_urls(document, operation))
    return next(iter(paths)).rstrip("/") if len(paths) == 1 else ""


def _expand(server: Json) -> list[str]:
    url = str(server.get("url", "/"))
    variables = server.get("variables", {}) or {}
    names = [name for name in variables if f"{{{name}}}" in url]
    choices = [variables[name].get("enum") or [variables[name].get("default", "")] for name in names]
    urls = []
    for values in itertools.islice(itertools.product(*choices), MAX_URLS):
        expanded = url
        for name, value in zip(names, values, strict=True):
            expanded = expanded.replace(f"{{{name}}}", str(value))
        urls.append(expanded)
    return urls


def _paths(urls: set[str]) -> set[str]:
    return {urlsplit(url).path.rstrip("/") or "/" for url in urls}
