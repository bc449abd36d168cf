"""Times of `make generate` and `make check`, of the tests, and of the ten slowest tests: `make bench-make`.

The section goes to docs/benchmark.md.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import time

from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT

COMMANDS = {
    "make generate": ("make", "generate"),
    "make check": ("make", "check"),
    "pytest -n 3": (sys.executable, "-m", "pytest", "-n", "3", "--dist", "worksteal", "--durations=10"),
}
DURATION = re.compile(r"^([\d.]+)s (call|setup|teardown) +(\S.*)$", re.MULTILINE)
SUMMARY = re.compile(r"\d+ passed[^\n]*? in ")


def main() -> None:
    """Run the commands, print the section and keep it."""
    lines = [f"## Times of development\n\nMade by `make bench-make`, Python {platform.python_version()}.\n"]
    lines += ["| command | wall s |", "|---|---:|"]
    slowest: list[str] = []
    for name, command in COMMANDS.items():
        started = time.perf_counter()
        completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        took = time.perf_counter() - started
        if completed.returncode:
            raise SystemExit(f"{name} failed:\n{completed.stdout[-3000:]}{completed.stderr[-2000:]}")
        summary = SUMMARY.search(completed.stdout)
        lines.append(f"| `{name}`{': ' + summary.group()[:-4] if summary else ''} | {took:.0f} |")
        slowest += [f"| `{test}` | {seconds} |" for seconds, _, test in DURATION.findall(completed.stdout)]
    lines += ["", "| slowest tests | s |", "|---|---:|", *slowest]
    text = "\n".join(lines) + "\n"
    write_section(DOCS / "benchmark.md", "make", text, title="Benchmark")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
