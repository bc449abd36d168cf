"""Run the example of a loop that survives, with kills of the loop and of its server at random moments."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import attrs
from tests.rigs.chaos.settings import Settings
from tests.rigs.official.report import DOCS
from tests.support.embedded import ServerProcess

LOOP = DOCS / "examples" / "resilient_loop.py"
STEPS_PER_MOMENT = 6
"""Training steps for each kill, so that the loop reaches the next checkpoint in between."""
MAX_PAUSE_STEPS = 10.0
"""Most steps for whose time a kill is delayed after the checkpoint that it waits for."""
MAX_SECONDS = 1200


@attrs.frozen
class Moment:
    """A moment of a kill: a random time after the checkpoint of a step.

    Args:
        step: the step.
        pause_steps: time after the checkpoint, in the time that a step takes without kills.
        victims: the processes to kill, ``client``, ``server`` or both.
    """

    step: int
    pause_steps: float
    victims: tuple[str, ...]


def draw_moments(count: int, steps: int, rng: random.Random) -> list[Moment]:
    """Draw the moments of a run."""
    victims = [("client",), ("server",), ("client", "server")]
    return [
        Moment(step, rng.uniform(0.0, MAX_PAUSE_STEPS), rng.choice(victims))
        for step in sorted(rng.randrange(int(steps * 0.9)) for _ in range(count))
    ]


def run_loop(folder: Path, steps: int, moments: list[Moment], step_s: float) -> tuple[float, Counter[str]]:
    """Run the loop to its end, with kills; return the loss that it prints, and the number of kills and of moments.

    Args:
        folder: folder for the server and the progress of the loop.
        steps: training steps.
        moments: moments of the kills.
        step_s: seconds that a step takes without kills.
    """
    server = ServerProcess(folder / "data")
    server.start()
    progress = folder / "progress.json"
    command = [sys.executable, str(LOOP), server.url, str(progress), str(steps)]
    environment = {**os.environ, "TINKER_API_KEY": "tml-chaos", "TINKER_TELEMETRY": "0"}
    kills: Counter[str] = Counter()
    end = time.monotonic() + MAX_SECONDS

    def start_loop() -> subprocess.Popen[str]:
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    loop = start_loop()
    try:
        for moment in moments:
            while _read_step(progress) < moment.step // 5 * 5 and loop.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            time.sleep(moment.pause_steps * step_s)
            if loop.poll() is not None:
                break
            if "client" in moment.victims:
                loop.kill()
                loop.communicate()
            if "server" in moment.victims:
                server.kill()
                server.start()
            if "client" in moment.victims:
                loop = start_loop()
            kills.update([*moment.victims, "moment"])
        output, _ = loop.communicate(timeout=max(1.0, end - time.monotonic()))
        return float(output), kills
    finally:
        loop.kill()
        loop.communicate()
        server.stop()


def _read_step(progress: Path) -> int:
    return int(json.loads(progress.read_text())[0]) if progress.exists() else 0


def run_example(settings: Settings) -> tuple[str, bool]:
    """Run the loop without kills and with kills; return the report and whether the losses are equal."""
    steps = settings.moments * STEPS_PER_MOMENT
    moments = draw_moments(settings.moments, steps, random.Random(settings.seed))
    rows, losses = [], []
    kills: Counter[str] = Counter()
    seconds = 0.0
    for title, run_moments in (("undisturbed", []), ("killed", moments)):
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            loss, kills = run_loop(Path(folder), steps, run_moments, seconds / steps)
        losses.append(loss)
        seconds = time.monotonic() - started
        rows.append(f"| {title} | {kills['client']} | {kills['server']} | {seconds:.0f} s | {loss!r} |")
    is_equal = losses[0] == losses[1]
    table = "\n".join(rows)
    report = f"""\
### The loop of docs/examples/resilient_loop.py

{steps} steps, with kills by -9 at {kills["moment"]} random moments (seed {settings.seed}), each of the loop, of its
server or of both. The final losses are {"equal" if is_equal else "DIFFERENT"}.

| run | kills of the loop | kills of the server | time | final loss |
|---|---|---|---|---|
{table}
"""
    # A loop that ends before the last kill proves less than it should.
    return report, is_equal and kills["moment"] == len(moments)
