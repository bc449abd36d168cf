"""Lists the mutants of files with mutmut, in whose environment it runs: a JSON object of diffs by name."""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name


def list_mutants(path: Path) -> dict[str, str]:
    """Return the diff of each mutant of a file, by the name that mutmut accepts."""
    file = mutate_file_contents(str(path), path.read_text())
    lines: list[str] = file.code.splitlines()

    def read_function(name: str) -> list[str]:
        span = file.line_span_by_function_name[name]
        return lines[span.start - 1 : span.end]

    diffs = {}
    for name in file.mutant_names:
        original = f"{name.partition('__mutmut_')[0]}__mutmut_orig"
        # The first line differs in the name alone; a default in it may be the mutation.
        before = [line.replace(original, "function") for line in read_function(original)]
        after = [line.replace(name, "function") for line in read_function(name)]
        diffs[get_mutant_name(path, name)] = "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=2))[2:])
    return diffs


if __name__ == "__main__":
    json.dump({name: diff for path in sys.argv[1:] for name, diff in list_mutants(Path(path)).items()}, sys.stdout)
