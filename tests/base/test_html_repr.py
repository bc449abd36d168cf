"""Tests of the tables that notebooks show of models: complete, escaped, bounded and without secrets."""

from __future__ import annotations

from datetime import datetime, timezone
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from support.instances import Instances
from tinkerwire._server.http.openapi import load_contract
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.model import Model
from tinkerwire_generated import models as m

TIME = datetime(2026, 3, 4, 5, 6, 7, 890, tzinfo=timezone.utc)
TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td"}


class Reader(HTMLParser):
    """Collects captions and cells, and checks that only tags of tables occur, all of them closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert all(name in ("style", "colspan") for name, _ in attrs)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def close(self) -> None:
        super().close()
        assert not self._open


def read_texts(value: Any) -> list[str]:
    """Return the captions and cells of an object's table."""
    reader = Reader()
    reader.feed(value._repr_html_())
    reader.close()
    return reader.texts


def create_checkpoint(name: str = "a") -> m.Checkpoint:
    """Create a checkpoint."""
    return m.Checkpoint(
        checkpoint_id=f"weights/{name}", checkpoint_type="training", time=TIME, tinker_path=f"tinker://r/weights/{name}"
    )


def test_model_is_a_table_of_its_fields() -> None:
    """Names and values are those of the fields that are set; a path is complete, for copying."""
    texts = read_texts(create_checkpoint())
    assert texts[0] == "Checkpoint"
    cells = dict(zip(texts[1::2], texts[2::2], strict=True))
    assert cells["tinker_path"] == "tinker://r/weights/a"
    assert cells["time"] == "2026-03-04 05:06:07+00:00"
    assert "size_bytes" not in cells


def test_list_of_models_is_a_table_with_a_row_for_each() -> None:
    """The columns are the fields that any of them has; later rows are counted."""
    checkpoints = [create_checkpoint(str(number)) for number in range(53)]
    texts = read_texts(m.CheckpointsListResponse(checkpoints=checkpoints))
    assert "checkpoints (53)" in texts
    assert "tinker://r/weights/49" in texts and "tinker://r/weights/50" not in texts
    assert texts[-1] == "... and 3 more"
    assert texts.count("checkpoint_id") == 1


def test_metrics_have_a_row_each() -> None:
    """A mapping has a row for each key."""
    output = m.ForwardBackwardOutput(
        loss_fn_output_type="x", loss_fn_outputs=[], metrics={"loss:sum": 1.5, "tokens:sum": 3.0}
    )
    texts = read_texts(output)
    assert texts[texts.index("metrics['loss:sum']") + 1] == "1.5"


def test_secrets_are_hidden() -> None:
    """Tokens and signed URLs do not appear, nor do values of keys that the contract does not know."""
    token = m.AuthTokenResponse(jwt="s3cret", extra_fields={"refresh": "s3cret"})
    archive = m.CheckpointArchiveUrlResponse(url="https://host/s3cret", expires=TIME)
    for value in (token, archive):
        texts = read_texts(value)
        assert "<secret>" in texts
        assert "s3cret" not in "".join(texts)
    assert "['refresh']" in read_texts(token)


def test_large_values_are_short() -> None:
    """Tensors, prompts and texts of any size give a table of bounded size."""
    tensor = m.TensorData(data=np.zeros(10**6, dtype=np.float32), dtype="float32", shape=[10**6])
    prompt = m.ModelInput.from_ints([1] * 10**5)
    datum = m.Datum(model_input=prompt, loss_fn_inputs={f"weights{number}": tensor for number in range(300)})
    run = m.ModelData(model_name="x" * 10**6)
    for value in (tensor, prompt, datum, run):
        assert len(value._repr_html_()) < 40_000
        read_texts(value)


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "</td></table>", "a & b", "\"'`", "\x00\u202e"])
def test_texts_are_escaped(text: str) -> None:
    """A text of a server or of a user is shown as it is, and is never markup."""
    value = m.ModelData(model_name=text)
    assert "<script" not in value._repr_html_()
    assert text.replace("\x00", "\ufffd") in "".join(read_texts(value)).replace("\x00", "\ufffd")


def list_model_classes() -> list[type[Model]]:
    """Return the classes of all models."""
    classes = [getattr(m, name) for name in m.__all__]
    return [cls for cls in classes if isinstance(cls, type) and issubclass(cls, Model)]


def test_every_model_has_a_table() -> None:
    """All models inherit the method, and their text is what it was."""
    assert len(list_model_classes()) > 150
    assert all(hasattr(cls, "_repr_html_") for cls in list_model_classes())
    assert repr(m.ModelData(model_name="a")) == "ModelData(model_name='a')"


@given(Instances(load_contract("0.38.0")).of("TrainingRunsResponse"))
def test_any_response_has_a_table(body: Any) -> None:
    """Whatever a server sends is shown."""
    read_texts(Converter().structure(body, m.TrainingRunsResponse))
