"""Text of the demo as bytes, split into a training part and a held-out part."""

from __future__ import annotations

import math
import pydoc_data.topics
import re
from collections import Counter
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt

HELD_OUT = 0.1
"""The last tenth of the text is never trained on."""

Bytes = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Corpus:
    """Text as token ids, one token a byte."""

    name: str
    train: Bytes
    held_out: Bytes

    @property
    def unigram_entropy(self) -> float:
        """Return nats per byte of the held-out text for a model that knows only byte frequencies."""
        counts = Counter(self.held_out.tolist())
        total = len(self.held_out)
        return -sum(n / total * math.log(n / total) for n in counts.values())

    def windows(self, count: int, length: int, rng: np.random.Generator) -> list[Bytes]:
        """Return random windows of the training part, ``length`` + 1 bytes each."""
        starts = rng.integers(0, len(self.train) - length - 1, size=count)
        return [self.train[start : start + length + 1] for start in starts]

    def held_out_windows(self, count: int, length: int) -> list[Bytes]:
        """Return windows spread evenly over the held-out part, the same every time."""
        starts = np.linspace(0, len(self.held_out) - length - 1, num=count, dtype=int)
        return [self.held_out[start : start + length + 1] for start in starts]

    def prompt(self, length: int) -> bytes:
        """Return the beginning of the first held-out line that starts like a sentence, or of the held-out text."""
        text = bytes(self.held_out.tolist())
        match = re.search(rb"^[A-Z][a-z].{%d}" % (length - 2), text, re.MULTILINE)
        return match[0] if match else text[:length]


def load_corpus(text: Path | None, window: int) -> Corpus:
    """Return the text of a file, or the text that CPython ships in pydoc_data.topics.

    Raises:
        ValueError: the text is too short for windows of ``window`` bytes.
    """
    if text is None:
        name, content = "pydoc_data.topics", "\n\n".join(pydoc_data.topics.topics.values()).encode()
    else:
        name, content = text.name, text.read_bytes()
    tokens = np.frombuffer(content, dtype=np.uint8).astype(np.int64)
    cut = int(len(tokens) * (1 - HELD_OUT))
    if len(tokens) - cut < 2 * window:
        raise ValueError(f"{name}: {len(tokens)} bytes are too few; the demo needs {math.ceil(2 * window / HELD_OUT)}")
    return Corpus(name, tokens[:cut], tokens[cut:])
