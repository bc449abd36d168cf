"""One pass of a whole batch through the model: log probabilities, losses and matrix gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray
from tinkerwire._server.engine.base import BaseModel
from tinkerwire._server.engine.batch import Batch, Piece, pieces
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.logits import log_softmax
from tinkerwire._server.engine.losses import Loss, TokenLosses
from tinkerwire._server.engine.parallel import run_all
from tinkerwire._server.engine.transformer import Weights, backward, forward

__all__ = ["LossPass", "PassResult", "accumulate"]


@attrs.frozen(eq=False)
class PassResult:
    """Log probabilities (nats) and losses of every target, (positions, K), and the wanted matrices' gradients."""

    logprobs: FloatArray
    tokens: TokenLosses
    grads: dict[str, FloatArray]


@attrs.frozen(kw_only=True, eq=False)
class LossPass:
    """A loss over a batch under given weights.

    Args:
        where: the call, for error texts.
        wanted: the matrices to compute gradients of; none makes it a forward pass only.
    """

    where: str
    base: BaseModel
    weights: Weights
    batch: Batch
    loss: Loss
    settings: Mapping[str, float]
    wanted: Sequence[str] = ()

    def run(self) -> PassResult:
        """Compute it, pieces of the batch in parallel; sums are taken in a fixed order.

        Raises:
            EngineError: a loss too large for the model's numbers; names its position.
        """
        all_pieces = list(pieces(self.base.config, self.batch))
        logprobs = np.empty(self.batch.targets.shape, dtype=np.float64)
        tokens = TokenLosses(np.empty_like(logprobs), np.empty_like(logprobs))
        grads: dict[str, FloatArray] = {}
        for piece, own in zip(all_pieces, run_all(self._run_piece, all_pieces), strict=True):
            logprobs[piece.positions] = own.logprobs
            tokens.values[piece.positions] = own.tokens.values
            tokens.slopes[piece.positions] = own.tokens.slopes
            for key, watched in own.tokens.watched.items():
                tokens.watched.setdefault(key, np.empty_like(logprobs))[piece.positions] = watched
            accumulate(grads, own.grads)
        return PassResult(logprobs, tokens, grads)

    def _run_piece(self, piece: Piece) -> PassResult:
        run = _PieceRun(self.base, self.weights, piece, self.batch, keep=bool(self.wanted))
        inputs = {key: column[piece.positions] for key, column in self.batch.inputs.items()}
        tokens = self.loss.function(run.logprobs, inputs, self.settings)
        _require_finite(self.where, self.batch, piece, tokens, self.base.dtype)
        grads = run.gradients(tokens.slopes, self.wanted) if self.wanted else {}
        return PassResult(run.logprobs, tokens, grads)


def accumulate(total: dict[str, FloatArray], more: Mapping[str, FloatArray]) -> None:
    """Add arrays to those of the same name."""
    for name, value in more.items():
        total[name] = total[name] + value if name in total else value


class _PieceRun:
    """The forward pass of one piece, and its gradient."""

    def __init__(self, base: BaseModel, weights: Weights, piece: Piece, batch: Batch, *, keep: bool) -> None:
        self._config, self._weights, self._piece = base.config, weights, piece
        hidden, self._tape = forward(base.config, weights, piece.tokens, keep=keep)
        self._hidden = hidden[piece.real]
        self._rows = np.arange(len(piece.positions))[:, None]
        self._targets = batch.targets[piece.positions]
        self._all_logprobs = log_softmax(self._hidden @ weights["unembedding"])
        self.logprobs: FloatArray = self._all_logprobs[self._rows, self._targets].astype(np.float64)

    def gradients(self, slopes: FloatArray, wanted: Sequence[str]) -> dict[str, FloatArray]:
        """Gradients of the wanted matrices, from the loss's derivative by each target's log probability."""
        slopes = slopes.astype(self._hidden.dtype)
        d_logits = np.exp(self._all_logprobs)
        d_logits *= -slopes.sum(axis=1, keepdims=True)
        # A token may be a position's target more than once.
        np.add.at(d_logits, (self._rows, self._targets), slopes)
        d_hidden = np.zeros((*self._piece.real.shape, self._hidden.shape[1]), dtype=self._hidden.dtype)
        d_hidden[self._piece.real] = d_logits @ self._weights["unembedding"].T
        grads = backward(self._config, self._weights, self._tape, d_hidden, wanted)
        if "unembedding" in wanted:
            grads["unembedding"] = self._hidden.T @ d_logits
        return grads


def _require_finite(where: str, batch: Batch, piece: Piece, own: TokenLosses, dtype: np.dtype[np.floating]) -> None:
    limit = np.finfo(dtype).max
    bad = ~((np.abs(own.values) <= limit) & (np.abs(own.slopes) <= limit))
    if bad.any():
        row = int(bad.any(axis=1).argmax())
        datum, position = batch.locate(int(piece.positions[row]))
        value = own.values[row][bad[row]][0]
        raise EngineError(
            f"{where}: datum {datum}: the loss at position {position} is {value}, beyond {dtype}; "
            "check logprobs and advantages there, the policy has moved far from the one that sampled it"
        )
