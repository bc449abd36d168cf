"""A command of the user's that prints a credential, such as one of a password manager."""

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
"""How long the end of a command that was stopped is waited for."""


def read_credential_command() -> str | None:
    """The command, from TINKER_CREDENTIAL_CMD."""
    return os.environ.get("TINKER_CREDENTIAL_CMD", "").strip() or None


async def run_command(command: str) -> Secret:
    """What a shell command prints, without the blanks around it; its own error output goes where ours goes.

    Neither the command nor what it printed is in any error: either may hold the credential.

    Raises:
        TinkerError: it fails, takes longer than a minute, or prints nothing that can be a credential.
    """
    # A session of its own, so that it can be stopped together with all that it started.
    process = await asyncio.create_subprocess_shell(command, stdin=DEVNULL, stdout=PIPE, start_new_session=True)
    try:
        printed, _ = await wait_for(process.communicate(), COMMAND_TIMEOUT_S)
        found = Secret(printed.decode("utf-8", "replace").strip())
        # An error reporter that looks into this frame is not to find it.
        del printed
    except asyncio.TimeoutError:
        raise TinkerError(
            f"TINKER_CREDENTIAL_CMD: the command had not ended after {COMMAND_TIMEOUT_S:g} s, and was stopped; "
            "it must not ask for anything"
        ) from None
    finally:
        if process.returncode is None:
            await _stop(process)
    if process.returncode != 0:
        raise TinkerError(
            f"TINKER_CREDENTIAL_CMD: the command failed with exit status {process.returncode}; try it in a shell"
        )
    if not is_sendable(found.reveal()):
        what = "more than one word, or characters beyond printable ASCII" if found.reveal() else "nothing"
        raise TinkerError(f"TINKER_CREDENTIAL_CMD: the command printed {what}, and not just a credential")
    if found.expires_in_s() == 0:
        raise TinkerError("TINKER_CREDENTIAL_CMD: the command printed a token that is over; sign in to what it asks")
    return found


async def _stop(process: asyncio.subprocess.Process) -> None:
    try:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        await wait_for(process.wait(), REAP_S)
    except (ProcessLookupError, asyncio.TimeoutError):
        return
