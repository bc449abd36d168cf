"""User's command that prints a credential, such as the command of a password manager."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE

from tinkerwire_base.errors import TinkerError

from .._futures.timeout import wait_for
from .secret import Secret, is_sendable

COMMAND_TIMEOUT_S = 60.0
REAP_S = 1.0
"""Seconds to wait for the end of a stopped command."""


def read_credential_command() -> str | None:
    """Return the command of TINKER_CREDENTIAL_CMD."""
    return os.environ.get("TINKER_CREDENTIAL_CMD", "").strip() or None


async def run_command(command: str) -> Secret:
    """Return the output of a shell command without surrounding whitespace; its standard error is inherited.

    No error contains the command or its output, because either may hold the credential.

    Raises:
        TinkerError: the command fails, takes longer than a minute, or prints an unusable credential.
    """
    # In a new session, so that the command and its children can be stopped together.
    process = await asyncio.create_subprocess_shell(command, stdin=DEVNULL, stdout=PIPE, start_new_session=True)
    try:
        printed, _ = await wait_for(process.communicate(), COMMAND_TIMEOUT_S)
        secret = Secret(printed.decode("utf-8", "replace").strip())
        # An error reporter that looks into this frame is not to find it.
        del printed
    except asyncio.TimeoutError:
        raise TinkerError(
            f"TINKER_CREDENTIAL_CMD: the command ran for {COMMAND_TIMEOUT_S:g} s and was stopped; "
            "it must not wait for input"
        ) from None
    finally:
        if process.returncode is None:
            await _stop(process)
    if process.returncode != 0:
        raise TinkerError(
            f"TINKER_CREDENTIAL_CMD: the command failed with exit status {process.returncode}; try it in a shell"
        )
    if not is_sendable(secret.reveal()):
        description = "more than one word, or characters beyond printable ASCII" if secret.reveal() else "nothing"
        raise TinkerError(f"TINKER_CREDENTIAL_CMD: the command must print only a credential, got {description}")
    if secret.expires_in_s() == 0:
        raise TinkerError(
            "TINKER_CREDENTIAL_CMD: the command printed an expired token; sign in again in the tool it calls"
        )
    return secret


async def _stop(process: asyncio.subprocess.Process) -> None:
    try:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        await wait_for(process.wait(), REAP_S)
    except (ProcessLookupError, asyncio.TimeoutError):
        return
