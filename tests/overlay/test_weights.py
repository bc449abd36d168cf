"""Paths of saved weights: what is certainly wrong is refused, what servers may name in their own way is not."""

from __future__ import annotations

import pytest

from tinkerwire.weights import refuse_path_of_kind


@pytest.mark.parametrize(
    "path", ["tinker://m/weights/a", "tinker://m/a", "tinker://m", "tinker://m/x/a/b", "tinker://"]
)
def test_paths_that_may_be_training_state(path: str) -> None:
    """Anything with the scheme that is not of the other kind is left to the server."""
    refuse_path_of_kind("sampler", path, "load training state")


@pytest.mark.parametrize("path", ["tinker://m/sampler_weights/a", "tinker://m/a", "tinker://"])
def test_paths_that_may_be_sampler_weights(path: str) -> None:
    """The same, the other way round."""
    refuse_path_of_kind("training", path, "be sampled from")


def test_the_wrong_kind_names_the_right_one() -> None:
    """The error says what the weights are, what they cannot do, and which method gives the right path."""
    with pytest.raises(
        ValueError, match=r"holds sampler weights, which cannot load training state; .* save_state returned"
    ):
        refuse_path_of_kind("sampler", "tinker://m/sampler_weights/a", "load training state")
    with pytest.raises(ValueError, match=r"holds training weights, .* save_weights_for_sampler returned"):
        refuse_path_of_kind("training", "tinker://m/weights/a", "be sampled from")


@pytest.mark.parametrize("path", ["", "m/weights/a", "TINKER://m/weights/a", "https://m/weights/a", None, 7])
def test_what_is_no_path(path: object) -> None:
    """What does not have the scheme is no path, and the error says where paths come from."""
    with pytest.raises(ValueError, match=r"is not a tinker:// path; saving gives one in the \.path"):
        refuse_path_of_kind("sampler", path, "load training state")  # type: ignore[arg-type]
