"""The commands ``tinkerwire session``."""

from __future__ import annotations

from pathlib import Path

import click

from .client import open_rest_client
from .framework import SharedOptions, group, pass_options
from .output import format_size, print_result, progress, properties, report


@group("session")
def cli() -> None:
    """Export the traces of sessions."""


@cli.command("export-trace")
@click.argument("session_id")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write; by default SESSION_ID.pftrace in the current folder.",
)
@click.option("--url-only", is_flag=True, help="Print the signed URL of the trace; anyone who has it can download.")
@pass_options
def _export_trace(options: SharedOptions, session_id: str, output: Path | None, url_only: bool) -> None:
    """Download the trace of a session, for https://ui.perfetto.dev.

    The server makes the trace first, which can take minutes.
    """
    file = output or Path(f"{session_id.replace('/', '_')}.pftrace")
    report(options, f"The server makes the trace of session {session_id}.")
    with open_rest_client(options) as rest:
        if url_only:
            url = rest.export_session_trace(session_id).result()
            print_result(options, {"session_id": session_id, "url": url}, url)
            return
        with progress(options, "Downloading", None) as advance:
            size = rest.download_session_trace(session_id, file, on_progress=advance).result()
    data = {"session_id": session_id, "destination": str(file), "file_size_bytes": size}
    pairs = {"Session": session_id, "File": str(file), "Size": format_size(size)}
    print_result(options, data, properties(pairs))
