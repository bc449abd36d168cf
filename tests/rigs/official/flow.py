"""The whole flow of the Tinker API through one client, with one JSON line per step."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import threading
import time
from typing import Any

from tests.rigs.official import steps_catalogue, steps_numbers, steps_sampling, steps_training
from tests.rigs.official.flow_state import Blocked, Flow, Skipped, Step, Wrong

STEPS: list[Step] = [
    *steps_training.STEPS,
    *steps_sampling.STEPS,
    *steps_catalogue.STEPS,
    *steps_training.LAST_STEPS,
]
DETAIL_CHARACTERS = 500
GRACE_S = 5.0  # the error of a step's own deadline is more precise than a cancellation
LONG_STEPS: dict[Step, int] = {steps_numbers.numbers: 5}
"""Steps of more operations than others, with the number of deadlines that they have."""


def run_step(step: Step, flow: Flow) -> dict[str, Any]:
    """Run one step with a deadline and return its record.

    outcome is one of: works; wrong (the response makes no sense); error (an exception); blocked (what it needs is
    not there); timeout (no end within the deadline); skipped (this client, or the server's wire, does not have it,
    which is ok).
    """
    finding: dict[str, str] = {}

    def work() -> None:
        try:
            finding.update(outcome="works", detail=step(flow))
        except TimeoutError as error:
            finding.update(outcome="timeout", detail=str(error) or "no result within the deadline")
        except Blocked as error:
            finding.update(outcome="blocked", detail=str(error))
        except Skipped as error:
            finding.update(outcome="skipped", detail=str(error))
        except Wrong as error:
            finding.update(outcome="wrong", detail=str(error))
        except Exception as error:
            # tinkerwire raises DialectError if the server's wire lacks the step.
            outcome = "skipped" if type(error).__name__ == "DialectError" else "error"
            finding.update(outcome=outcome, detail=f"{type(error).__name__}: {error}")

    start = time.time()
    # A client that hangs must not stop the flow: its thread is left behind.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    deadline_s = flow.timeout_s * LONG_STEPS.get(step, 1) + GRACE_S
    thread.join(deadline_s)
    record = dict(finding) or {"outcome": "timeout", "detail": f"no end within {deadline_s:.0f} s"}
    return {
        "step": step.__name__,
        "ok": record["outcome"] in ("works", "skipped"),
        "outcome": record["outcome"],
        "detail": record["detail"][:DETAIL_CHARACTERS],
        "start": round(start, 3),
        "seconds": round(time.time() - start, 3),
    }


def main() -> int:
    """Flow through all steps; return 1 when one did not work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", required=True, choices=["tinker", "tinkerwire"])
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--base-model", help="the first that the server names, by default")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="deadline of one step")
    parser.add_argument("--numbers", action="store_true", help="keep numbers of a model more, for a comparison")
    parser.add_argument("--settings", type=json.loads, default={}, metavar="JSON", help="more for the ServiceClient")
    options = parser.parse_args()
    client = importlib.import_module(options.client)
    flow = Flow(client, options.base_url, options.base_model, options.timeout, **options.settings)
    failed = False
    # The first step chooses the base model.
    steps = [STEPS[0], steps_numbers.numbers, *STEPS[1:]] if options.numbers else STEPS
    for step in steps:
        record = run_step(step, flow)
        if step is steps_numbers.numbers:
            record["numbers"] = flow.numbers
        failed = failed or not record["ok"]
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    # os._exit: a thread that still hangs in the client must not keep the process alive.
    os._exit(main())
