"""The command ``tinkerwire doctor``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .._transport.address import address_without_secrets, resolve_base_url
from .client import open_service_client
from .config import find_url_source
from .errors import CommandFailed, clean_line
from .framework import SharedOptions, command, pass_options
from .output import Table, print_result

if TYPE_CHECKING:
    from .._diagnosis.finding import Finding


@command("doctor")
@pass_options
def cli(options: SharedOptions) -> None:
    """Check the connection to the server, step by step.

    Checks address, key, proxy, name lookup, connection, TLS, dialect, clock and latency. Each problem comes with the
    way out. The exit code is 1 if a check failed; a warning alone is a success.
    """
    findings = _run_checks(options)
    failed = [finding.name for finding in findings if finding.status == "failed"]
    checks = [
        {
            "name": finding.name,
            "status": finding.status,
            "detail": clean_line(finding.detail),
            "remedy": finding.remedy,
        }
        for finding in findings
    ]
    data = {
        "base_url": clean_line(
            address_without_secrets(options.base_url or os.environ.get("TINKER_BASE_URL") or "default")
        ),
        "is_ok": not failed,
        "checks": checks,
    }
    rows = [
        (str(check["name"]), str(check["status"]), "; ".join(filter(None, (check["detail"], check["remedy"]))))
        for check in checks
    ]
    print_result(options, data, Table(("Check", "Status", "Detail"), rows))
    if failed:
        raise CommandFailed(f"failed: {', '.join(failed)}; see the details above")


def _run_checks(options: SharedOptions) -> list[Finding]:
    """Return the results of the checks; after a failure, those that depend on it are omitted."""
    # Only this command loads the checks and the transport.
    from tinkerwire_base.errors import TinkerError  # noqa: PLC0415

    from .._diagnosis.finding import Finding, has_failed  # noqa: PLC0415
    from .._diagnosis.key import check_key  # noqa: PLC0415
    from .._diagnosis.network import check_network  # noqa: PLC0415

    try:
        url = resolve_base_url(options.base_url)
    except ValueError as error:
        remedy = "set --base-url or TINKER_BASE_URL to an http(s) URL, or to local"
        return [Finding("address", "failed", str(error), remedy)]
    findings = [Finding("address", "ok", f"{url} ({find_url_source(options)})"), check_key(url)]
    if has_failed(findings):
        return findings + check_network(url)
    try:
        with open_service_client(options, "doctor") as service:
            return findings + service.diagnose()
    except (TinkerError, OSError, ValueError) as error:
        findings += check_network(url)
        if not has_failed(findings):
            findings.append(
                Finding("settings", "failed", str(error), "correct the setting; `tinkerwire config` lists all")
            )
        return findings
