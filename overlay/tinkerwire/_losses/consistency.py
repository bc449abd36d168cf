"""Regularizer of the difference between pairs of datums, such as one answer behind two prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import attrs

from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_base.validators import require_optional_text, validator_of
from tinkerwire_generated import models

from .elementwise import Reduction
from .logprob_values import read_weights
from .term import Evaluation, LossTerm, zero_with_graph

Distance = Literal["l1", "l2"]


def consistency(
    pairs: Sequence[tuple[int, int]] | None = None,
    *,
    distance: Distance = "l2",
    reduction: Reduction = "sum",
    mask: str | None = None,
    name: str | None = None,
) -> LossTerm:
    """Penalize the difference between the log probabilities of the same tokens in two datums.

    The positions of the two datums that count are compared in order; both must have equally many. Their weights do not
    matter otherwise.

    Args:
        pairs: positions of two datums in the batch, for each pair; None pairs 0 with 1, 2 with 3, and so on.
        distance: ``l1``, the absolute difference, or ``l2``, its square.
        reduction: ``sum`` over the pairs of tokens, or ``mean``.
        mask: input whose positions above 0 count; None for ``mask``, then ``weights``, then all positions.
        name: name of the metric, to which the reduction is added; None for ``consistency_DISTANCE``.

    Raises:
        TypeError, ValueError: an argument is unknown. Raised for a batch: a pair does not exist, or its datums have
            different numbers of positions that count.
    """
    validator_of(Distance)("distance", distance)
    validator_of(Reduction)("reduction", reduction)
    require_optional_text("mask", mask)
    require_optional_text("name", name)
    if pairs is not None:
        for pair in pairs:
            is_pair = isinstance(pair, tuple | list) and len(pair) == 2
            if not is_pair or not all(isinstance(place, int) and not isinstance(place, bool) for place in pair):
                raise TypeError(f"pairs: expected positions of two datums for each pair, got {pair!r:.100}")
    chosen = None if pairs is None else tuple((first, second) for first, second in pairs)
    return Consistency(name or f"consistency_{distance}", chosen, distance, reduction, mask)


@attrs.frozen
class Consistency(LossTerm):
    """See :func:`consistency`."""

    name: str
    pairs: tuple[tuple[int, int], ...] | None
    distance: Distance
    reduction: Reduction
    mask: str | None

    def metric_names(self) -> list[str]:
        """See :class:`LossTerm`."""
        return [f"{self.name}:{self.reduction}"]

    def evaluate(self, data: Sequence[models.Datum], logprobs: Sequence[Array]) -> Evaluation:
        """See :class:`LossTerm`."""
        places = self._places(data, [array.shape for array in logprobs])
        scale = self._scale(places)
        gradients = [np.zeros(array.shape) for array in logprobs]
        total = 0.0
        for first, second, positions, others in places:
            gap = logprobs[first].reshape(-1)[positions] - logprobs[second].reshape(-1)[others]
            total += scale * float(np.abs(gap).sum() if self.distance == "l1" else (gap**2).sum())
            slope = scale * (np.sign(gap) if self.distance == "l1" else 2 * gap)
            _add_at(gradients, first, positions, slope)
            _add_at(gradients, second, others, -slope)

        def multiply(vectors: Sequence[Array]) -> list[Array]:
            products = [np.zeros(array.shape) for array in vectors]
            if self.distance == "l2":
                for first, second, positions, others in places:
                    gap = vectors[first].reshape(-1)[positions] - vectors[second].reshape(-1)[others]
                    _add_at(products, first, positions, 2 * scale * gap)
                    _add_at(products, second, others, -2 * scale * gap)
            return products

        return Evaluation(total, {self.metric_names()[0]: total}, gradients, multiply)

    def evaluate_torch(self, data: Sequence[models.Datum], logprobs: Sequence[Any]) -> tuple[Any, dict[str, float]]:
        """See :class:`LossTerm`."""
        import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        places = self._places(data, [tuple(values.shape) for values in logprobs])
        total: Any = zero_with_graph(logprobs)
        for first, second, positions, others in places:
            gap = (
                logprobs[first].reshape(-1)[torch.from_numpy(positions)]
                - logprobs[second].reshape(-1)[torch.from_numpy(others)]
            )
            total = total + (gap.abs() if self.distance == "l1" else gap**2).sum()
        total = total * self._scale(places)
        return total, {self.metric_names()[0]: float(total.detach())}

    def _scale(self, places: Sequence[tuple[int, int, Array, Array]]) -> float:
        count = sum(len(positions) for _, _, positions, _ in places)
        return 1.0 if self.reduction == "sum" else 1.0 / max(1, count)

    def _places(
        self, data: Sequence[models.Datum], shapes: Sequence[Sequence[int]]
    ) -> list[tuple[int, int, Array, Array]]:
        """Return for each pair its datums and the flat positions that are compared."""
        if self.pairs is None and len(data) % 2:
            raise ValueError(f"{self.name}: expected an even number of datums, got {len(data)}; pass pairs=")
        pairs = self.pairs if self.pairs is not None else [(i, i + 1) for i in range(0, len(data), 2)]
        counted: dict[int, Array] = {}
        places = []
        for pair in pairs:
            for number in pair:
                if not 0 <= number < len(data):
                    raise ValueError(f"{self.name}: pairs: no datum {number} in a batch of {len(data)}")
                if number not in counted:
                    weights = read_weights(number, data[number], self.mask, shapes[number])
                    counted[number] = np.flatnonzero(np.ones(shapes[number]) if weights is None else weights)
            first, second = pair
            if len(counted[first]) != len(counted[second]):
                raise ValueError(
                    f"{self.name}: the datums of a pair must have equally many positions that count, got "
                    f"{len(counted[first])} in data[{first}] and {len(counted[second])} in data[{second}]"
                )
            places.append((first, second, counted[first], counted[second]))
        return places


def _add_at(arrays: list[Array], number: int, positions: Array, values: Array) -> None:
    arrays[number].reshape(-1)[positions] += values
