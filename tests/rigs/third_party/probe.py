"""Responses of third-party servers to requests at the edge of the contract.

    python -m tests.rigs.third_party.probe                  every server
    python -m tests.rigs.third_party.probe --peer skyrl     one peer only

Writes a table for each server to docs/compatibility.md: the spellings that the server accepts, its rejections, and the
results of futures. The requests are in tests/rigs/third_party/edges.py.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import attrs
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.third_party import edges
from tests.rigs.third_party.run import SERVERS

from tinkerwire._wire import protobuf
from tinkerwire_base.call import PROTOBUF
from tinkerwire_base.conversion.converter import Converter

MAX_RESPONSE_CHARACTERS = 240
TEST_TIMEOUT_S = 30
Headers = Mapping[str, str]


@attrs.frozen
class ProbeResponse:
    """Status (0 for none), decoded body, and a mark of the format if the body was not JSON."""

    status: int
    body: Any
    form: str = ""


class Probe:
    """Run of requests against one server, each recorded with its response."""

    def __init__(self, base_url: str, *, is_protobuf: bool) -> None:
        self.base_url = base_url
        self.is_protobuf = is_protobuf  # whether forward_backward is sent as protobuf
        self.lines: list[tuple[str, str, str]] = []

    def send(self, method: str, path: str, body: Any = None, headers: Headers | None = None) -> ProbeResponse:
        """Send one request, bytes unchanged and other bodies as JSON, and return the response."""
        request_content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base_url}/api/v1/{path}", data=request_content, method=method)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=TEST_TIMEOUT_S) as response:
                status, kind, content = response.status, response.headers.get_content_type(), response.read()
        except urllib.error.HTTPError as error:
            status, kind, content = error.code, error.headers.get_content_type(), error.read()
        except TimeoutError:
            return ProbeResponse(0, f"no response within {TEST_TIMEOUT_S} s")
        if kind == PROTOBUF:
            return ProbeResponse(status, content, "protobuf ")
        try:
            return ProbeResponse(status, json.loads(content))
        except ValueError:
            return ProbeResponse(
                status, content.decode() if kind.startswith("text/") else f"{len(content)} bytes of {kind}"
            )

    def record(self, label: str, method: str, path: str, body: Any = None, headers: Headers | None = None) -> Any:
        """Send a request, record its response under the name `what`, and return the response."""
        response = self.send(method, path, body, headers)
        self._line(label, f"{method} {path}", response)
        return response.body

    def record_result(
        self, label: str, path: str, body: Any, headers: Headers | None = None, accept: str = "application/json"
    ) -> Any:
        """Record a request like `record`, or the result if the response is a future, requested as `accept`."""
        response = self.send("POST", path, body, headers)
        if response.status != 200:
            self._line(label, f"POST {path}", response)
            return response.body
        poll = {"request_id": response.body["request_id"]}
        response = self.send("POST", "retrieve_future", poll, {"accept": accept})
        if response.form:
            decode = protobuf.decode_sample if path == "asample" else protobuf.decode_output
            response = attrs.evolve(response, body=_convert_to_json(decode(response.body)))
        self._line(label, f"POST {path}, retrieve_future", response)
        return response.body

    def _line(self, label: str, request: str, response: ProbeResponse) -> None:
        text = re.sub(r"\b(model|sampling|session)_[0-9a-f]{6,}\b", r"\1_ID", json.dumps(response.body))
        text = re.sub(r'"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)?"', r'"TIME\1"', text)
        text = re.sub(r'"seed": \d{4,}', '"seed": SEED', text)
        text = text.replace("|", "/").replace("`", "'")
        text = text if len(text) <= MAX_RESPONSE_CHARACTERS else text[:MAX_RESPONSE_CHARACTERS] + "..."
        request = re.sub(r"\b(model|sampling|session)_[0-9a-f]{6,}\b", r"\1_ID", request)
        self.lines.append((label, request, f"{response.status or chr(0x2013)} {response.form}`{text}`"))

    def render_table(self) -> str:
        """Return the Markdown table of the records."""
        rows = "".join(f"| {label} | {request} | {response} |\n" for label, request, response in self.lines)
        return f"| case | request | status and response |\n|---|---|---|\n{rows}"


def _convert_to_json(result: Any) -> Any:
    """Return a decoded protobuf result in its JSON form, with fields in a fixed order."""
    converted = json.loads(Converter().encode(result))
    if "loss_fn_outputs" in converted:
        converted["loss_fn_outputs"] = [dict(sorted(output.items())) for output in converted["loss_fn_outputs"]]
    return converted


def main() -> None:
    """Probe and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=list(SERVERS), help="only this one")
    options = parser.parse_args()
    for peer in [SERVERS[options.peer]] if options.peer else SERVERS.values():
        with peer.running() as url:
            probe = Probe(url, is_protobuf=peer.is_protobuf)
            edges.send_all(probe)
        name = f"{peer.title} on the wire"
        intro = f"## {name}\n\nMade by `python -m tests.rigs.third_party.probe`; ids and times are replaced.\n\n"
        write_section(DOCS / "compatibility.md", name, intro + probe.render_table(), title="Compatibility")
        sys.stdout.write(f"{peer.title}\n{probe.render_table()}")


if __name__ == "__main__":
    main()
