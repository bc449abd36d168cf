"""The report of a run, and its forms: JSON, JUnit, a page, a badge, and the comparison with an earlier run."""
