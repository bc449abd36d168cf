"""Edits of the made release, each as file, text and its replacement, by the change that it makes."""

from __future__ import annotations

TYPES, JOBS = "tinker/types/all.py", "tinker/resources/jobs.py"
EDITS = {
    "field added": (TYPES, "    heat: float = 0.5\n", "    heat: float = 0.5\n    cold: int | None = None\n"),
    "required field added": (TYPES, "    mode: Mode\n", "    mode: Mode\n    owner: str\n"),
    "field removed": (TYPES, "    steps: int = 10 * 10\n", ""),
    "retyped": (TYPES, "    job_id: JobID\n", "    job_id: int\n"),
    "made required": (TYPES, "    heat: float = 0.5\n", "    heat: float\n"),
    "default changed": (TYPES, "    heat: float = 0.5\n", "    heat: float = 0.25\n"),
    "made lenient": (TYPES, "class Knobs(StrictBase)", "class Knobs(BaseModel)"),
    "alias changed": (TYPES, "JobID: TypeAlias = str", "JobID: TypeAlias = int"),
    "path changed": (JOBS, '"/api/v1/start"', '"/api/v1/start_job"'),
    "query added": (JOBS, '{"limit": limit}', '{"limit": limit, "page": limit}'),
    "query default changed": (JOBS, "limit: int = 20", "limit: int = 50"),
}
