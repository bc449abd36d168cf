"""Run the scenarios of failures, and write docs/reliability.md; environment variables shorten them.

    CHAOS_STEPS=60 CHAOS_SAMPLES=600 python -m tests.rigs.chaos.run training

Without names, all scenarios run. ``Settings`` has the variables.
"""

from __future__ import annotations

import argparse
import logging
import sys

from tests.rigs.chaos import clients, conditions, loop, training
from tests.rigs.chaos.settings import Settings
from tests.rigs.official.report import DOCS, write_section

SCENARIOS = {
    "training": training.run_cases,
    "loop": loop.run_example,
    "clients": clients.run_clients,
    "conditions": conditions.run_conditions,
}
"""Functions that run a scenario and return its report, and whether it survived."""


def main(arguments: list[str]) -> int:
    """Run scenarios; return 1 if one of them had a problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"one of {', '.join(SCENARIOS)}")
    names = parser.parse_args(arguments).scenarios or list(SCENARIOS)
    logging.disable(logging.CRITICAL)
    settings = Settings()
    survived = True
    for name in names:
        report, scenario_survived = SCENARIOS[name](settings)
        survived &= scenario_survived
        sys.stdout.write(f"{report}\n")
        sys.stdout.flush()
        write_section(DOCS / "reliability.md", f"chaos {name}", report, title="Reliability")
    return int(not survived)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
