"""The command ``tinkerwire config``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tinkerwire_generated.availability import NEWEST

from .._credentials.credentials_file import credentials_path
from .._diagnosis.key import find_key_source
from .._transport.address import address_without_secrets, resolve_base_url
from ..version import DEFAULT_WIRE, __version__
from .framework import SharedOptions, command, pass_options
from .output import Table, print_result

VARIABLES = {
    "TINKER_API_KEY": "API key",
    "TINKER_BASE_URL": "URL of the server",
    "TINKER_CREDENTIAL_CMD": "command that prints a key or token",
    "TINKER_PLAIN_HTTP_HOSTS": "hosts that may get a key over plain HTTP",
    "TINKER_PROJECT_ID": "project of new sessions",
    "TINKER_TAGS": "tags of new sessions",
    "TINKER_TELEMETRY": "0 disables telemetry",
    "TINKER_WIRE_VERSION": "wire version, without discovery",
    "TINKERWIRE_GATEWAY_API_KEY": "key that the gateway sends to its server",
    "TINKERWIRE_GATEWAY_CLIENT_KEY": "key that clients of the gateway send",
    "TINKERWIRE_HEADERS": "additional headers",
    "TINKERWIRE_LOCAL_FOLDER": "folder of the embedded server",
    "TINKERWIRE_OPENTELEMETRY": "1 exports spans and metrics",
    "TINKERWIRE_RECORD": "file of the recording",
    "TINKERWIRE_RECORD_MAX_BYTES": "size at which recording stops",
    "TINKERWIRE_TRACE": "file of the trace",
    "TINKERWIRE_TRACE_MAX_BYTES": "size of a trace",
    "TMPDIR": "folder for temporary files",
    "CLOUDFLARE_ACCESS_CLIENT_ID": "header for Cloudflare Access",
    "CLOUDFLARE_ACCESS_CLIENT_SECRET": "header for Cloudflare Access",
    "HTTPS_PROXY": "proxy for https",
    "HTTP_PROXY": "proxy for http",
    "ALL_PROXY": "proxy for http and https",
    "NO_PROXY": "hosts without a proxy",
    "SSL_CERT_FILE": "certificates to trust",
    "NO_COLOR": "disables colors",
    "COLUMNS": "width of tables",
}
"""Variables that the command line and the client read."""
SHOWN = {
    "TINKER_BASE_URL",
    "TINKER_PLAIN_HTTP_HOSTS",
    "TINKER_PROJECT_ID",
    "TINKER_TAGS",
    "TINKER_TELEMETRY",
    "TINKER_WIRE_VERSION",
    "TINKERWIRE_LOCAL_FOLDER",
    "TINKERWIRE_OPENTELEMETRY",
    "TINKERWIRE_RECORD",
    "TINKERWIRE_RECORD_MAX_BYTES",
    "TINKERWIRE_TRACE",
    "TINKERWIRE_TRACE_MAX_BYTES",
    "TMPDIR",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "NO_COLOR",
    "COLUMNS",
}
"""Variables whose values are shown, without the password of a URL; of the others only the presence is shown."""


@command("config")
@pass_options
def cli(options: SharedOptions) -> None:
    """Show the settings in use and their sources, without secrets."""
    url = resolve_base_url(options.base_url)
    source = find_url_source(options)
    wire = os.environ.get("TINKER_WIRE_VERSION") or None
    file = credentials_path()
    variables = [
        {"name": name, "is_set": bool(_read_variable(name)), "value": _read_shown_value(name)} for name in VARIABLES
    ]
    data: dict[str, Any] = {
        "version": __version__,
        "base_url": url,
        "base_url_source": source,
        "key_source": find_key_source(url),
        "wire_version": wire,
        "newest_wire": NEWEST,
        "served_wire": DEFAULT_WIRE,
        "credentials_file": str(file),
        "credentials_file_exists": Path(file).exists(),
        "variables": variables,
    }
    rows = [
        ("base URL", url, source),
        ("key", "set" if data["key_source"] else "-", data["key_source"] or "-"),
        ("wire version", wire or "discovered", "TINKER_WIRE_VERSION" if wire else "default"),
        ("credentials file", str(file), "exists" if data["credentials_file_exists"] else "missing"),
    ]
    rows += [
        (str(entry["name"]), str(entry["value"] or "set, hidden"), VARIABLES[str(entry["name"])])
        for entry in variables
        if entry["is_set"]
    ]
    print_result(options, data, Table(("Setting", "Value", "Source or meaning"), rows))


def _read_variable(name: str) -> str | None:
    # Proxies are also read in lower case.
    return os.environ.get(name) or (os.environ.get(name.lower()) if name.endswith("_PROXY") else None)


def _read_shown_value(name: str) -> str | None:
    value = _read_variable(name) if name in SHOWN else None
    # --base-url may override an address that is invalid because of a password in it.
    return address_without_secrets(value) if value and name == "TINKER_BASE_URL" else value


def find_url_source(options: SharedOptions) -> str:
    """Return the source of the URL of the server."""
    if options.base_url:
        return "--base-url"
    return "TINKER_BASE_URL" if os.environ.get("TINKER_BASE_URL") else "default"
