"""Passes of a batch through the model: log probabilities, losses and matrix gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray, log_softmax
from tinkerwire._server.engine.base import BaseModel
from tinkerwire._server.engine.batch import Batch, Piece, pieces
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.losses import Loss, TokenLosses
from tinkerwire._server.engine.parallel import run_all
from tinkerwire._server.engine.transformer import Weights, backward, run_forward


@attrs.frozen(eq=False)
class PassResult:
    """Log probabilities (nats) and losses of all targets, (positions, K), and gradients of matrices."""

    logprobs: FloatArray
    tokens: TokenLosses
    grads: dict[str, FloatArray]


@attrs.frozen(kw_only=True, eq=False)
class LossPass:
    """A loss over a batch for given weights.

    Args:
        where: name of the call in errors.
        base: the base model.
        weights: merged weights.
        batch: the batch.
        loss: the loss.
        settings: settings of the loss.
        trained: names of the matrices to compute gradients of; empty for a run_forward pass.
    """

    where: str
    base: BaseModel
    weights: Weights
    batch: Batch
    loss: Loss
    settings: Mapping[str, float]
    trained: Sequence[str] = ()

    def run(self) -> PassResult:
        """Compute the loss, with pieces of the batch in parallel; sums have a fixed order.

        Raises:
            EngineError: a loss exceeds the range of the dtype; the error names its position.
        """
        all_pieces = list(pieces(self.base.config, self.batch))
        logprobs = np.empty(self.batch.targets.shape, dtype=np.float64)
        tokens = TokenLosses(np.empty_like(logprobs), np.empty_like(logprobs))
        grads: dict[str, FloatArray] = {}
        for piece, result in zip(all_pieces, run_all(self._run_piece, all_pieces), strict=True):
            logprobs[piece.positions] = result.logprobs
            tokens.values[piece.positions] = result.tokens.values
            tokens.slopes[piece.positions] = result.tokens.slopes
            for key, values in result.tokens.statistics.items():
                tokens.statistics.setdefault(key, np.empty_like(logprobs))[piece.positions] = values
            accumulate(grads, result.grads)
        return PassResult(logprobs, tokens, grads)

    def _run_piece(self, piece: Piece) -> PassResult:
        run = _PieceRun(self.base, self.weights, piece, self.batch, keep=bool(self.trained))
        inputs = {key: column[piece.positions] for key, column in self.batch.inputs.items()}
        tokens = self.loss.function(run.logprobs, inputs, self.settings)
        _require_finite(self.where, self.batch, piece, tokens, self.base.dtype)
        grads = run.gradients(tokens.slopes, self.trained) if self.trained else {}
        return PassResult(run.logprobs, tokens, grads)


def accumulate(total: dict[str, FloatArray], addends: Mapping[str, FloatArray]) -> None:
    """Add arrays to the arrays with the same name."""
    for name, value in addends.items():
        total[name] = total[name] + value if name in total else value


class _PieceRun:
    """The run_forward pass of a piece, and its gradient."""

    def __init__(self, base: BaseModel, weights: Weights, piece: Piece, batch: Batch, *, keep: bool) -> None:
        self._config, self._weights, self._piece = base.config, weights, piece
        hidden, self._tape = run_forward(base.config, weights, piece.tokens, patches=batch.patches, keep=keep)
        self._hidden = hidden[piece.real]
        self._rows = np.arange(len(piece.positions))[:, None]
        self._targets = batch.targets[piece.positions]
        self._all_logprobs = log_softmax(self._hidden @ weights["unembedding"])
        self.logprobs: FloatArray = self._all_logprobs[self._rows, self._targets].astype(np.float64)

    def gradients(self, slopes: FloatArray, trained: Sequence[str]) -> dict[str, FloatArray]:
        """Return the gradients of matrices from the derivative of the loss by each target's log probability."""
        slopes = slopes.astype(self._hidden.dtype)
        d_logits = np.exp(self._all_logprobs)
        d_logits *= -slopes.sum(axis=1, keepdims=True)
        # A position may have the same target more than once.
        np.add.at(d_logits, (self._rows, self._targets), slopes)
        d_hidden = np.zeros((*self._piece.real.shape, self._hidden.shape[1]), dtype=self._hidden.dtype)
        d_hidden[self._piece.real] = d_logits @ self._weights["unembedding"].T
        grads = backward(self._config, self._weights, self._tape, d_hidden, trained)
        if "unembedding" in trained:
            grads["unembedding"] = self._hidden.T @ d_logits
        return grads


def _require_finite(where: str, batch: Batch, piece: Piece, tokens: TokenLosses, dtype: np.dtype[np.floating]) -> None:
    limit = np.finfo(dtype).max
    bad = ~((np.abs(tokens.values) <= limit) & (np.abs(tokens.slopes) <= limit))
    if bad.any():
        row = int(bad.any(axis=1).argmax())
        datum, position = batch.locate(int(piece.positions[row]))
        value = tokens.values[row][bad[row]][0]
        raise EngineError(
            f"{where}: datum {datum}: the loss at position {position} must be in the range of {dtype}, got {value}; "
            "check its logprobs and advantages: the policy may have moved far from the sampling policy"
        )
