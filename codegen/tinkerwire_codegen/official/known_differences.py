"""Intended differences between a contract and the facts, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from ..contract.source import LOADER
from .comparison import Difference

FILE = "known_differences.yaml"


def load_known_differences(folder: Path) -> dict[str, str]:
    """Load the reason for each intended difference by its text; none if the contract in ``folder`` has no such file.

    Raises:
        ValueError: the file is not a mapping of reasons to lists of texts.
    """
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)
        return {text: reason for reason, texts in content.items() for text in texts}
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError) as error:
        raise ValueError(f"{path}: must map each reason to a list of lines of `facts`: {error}") from error


def exclude_known(differences: Iterable[Difference], folder: Path) -> list[Difference]:
    """Return the differences without a reason in the contract in ``folder``."""
    known = load_known_differences(folder)
    return [difference for difference in differences if str(difference) not in known]
