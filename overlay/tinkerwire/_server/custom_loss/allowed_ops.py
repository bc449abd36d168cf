"""Allowed operations of custom losses: only these names are ever looked up in torch."""

from __future__ import annotations


def _under(prefix: str, names: str) -> frozenset[str]:
    return frozenset(prefix + name for name in names.split())


FUNCTIONS = (
    _under(
        "torch.",
        """
        abs absolute add all amax amin any arange argmax argmin argsort atan atan2 bitwise_and bitwise_not bitwise_or
        bitwise_xor cat ceil chunk clamp clamp_max clamp_min clip clone concat cos cosh cosine_similarity count_nonzero
        cumprod cumsum detach diff div divide dot eq erf erfc erfinv exp exp2 expm1 flatten flip floor
        floor_divide fmax fmin fmod frac full full_like gather ge gt hypot index_select isclose isfinite isinf isnan
        lerp le less log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not
        logical_or logical_xor logit logsumexp lt masked_fill masked_select matmul max maximum mean median min minimum
        mm mul multiply nan_to_num nanmean nansum narrow ne neg negative numel ones ones_like outer permute pow prod
        quantile reciprocal relu remainder repeat_interleave reshape roll round rsqrt rsub scalar_tensor select sigmoid
        sign sin sinh softmax sort sqrt square squeeze stack std std_mean sub subtract sum swapaxes t take
        take_along_dim tan tanh topk transpose tril triu true_divide trunc unbind unsqueeze var var_mean where xlogy
        zeros zeros_like
        """,
    )
    | _under("torch.functional.", "einsum norm split")
    | _under(
        "torch.nn.functional.",
        """
        binary_cross_entropy binary_cross_entropy_with_logits elu gaussian_nll_loss hardtanh hinge_embedding_loss
        huber_loss kl_div l1_loss leaky_relu log_softmax margin_ranking_loss mse_loss normalize pad poisson_nll_loss
        relu relu6 silu smooth_l1_loss soft_margin_loss softmax softmin softsign tanhshrink
        """,
    )
    | _under("torch._C._nn.", "gelu log_sigmoid one_hot softplus")
    | _under("torch._C._linalg.linalg_", "norm vector_norm")
    | _under(
        "torch._C._special.special_",
        "entr erf erfc erfinv exp2 expit expm1 log1p log_softmax logit logsumexp ndtr softmax xlog1py xlogy",
    )
    | _under(
        "operator.",
        """
        abs add and_ eq floordiv ge getitem gt iadd imul inv invert isub itruediv le lt matmul mod mul ne neg or_ pos
        pow sub truediv xor
        """,
    )
    | _under("math.", "ceil exp floor log log10 log1p log2 pow sqrt trunc")
    | {"getattr"}
)
"""Functions by their names on the wire."""

METHODS = _under(
    "",
    """
    abs add add_ all amax amin any argmax argmin argsort bfloat16 bitwise_and bitwise_not bitwise_or bitwise_xor bool
    ceil chunk clamp clamp_ clamp_max clamp_min clip clone contiguous cos count_nonzero cumprod cumsum detach diff dim
    div div_ dot double eq erf erfc exp exp2 expand expand_as expm1 flatten flip float floor floor_divide fmax fmin
    gather ge gt half index_select int isclose isfinite isinf isnan le lerp log log10 log1p log2 log_softmax logaddexp
    logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp long lt masked_fill masked_fill_
    masked_select matmul max maximum mean median min minimum mul mul_ nan_to_num nanmean nansum narrow ne neg new_full
    new_ones new_zeros norm numel outer permute pow prod quantile reciprocal relu remainder repeat repeat_interleave
    reshape roll round rsqrt select sigmoid sign sin size softmax sort split sqrt square squeeze std sub sub_ sum t
    take_along_dim tanh to topk transpose tril triu true_divide trunc type_as unbind unflatten unsqueeze var view
    view_as where xlogy
    """,
)
"""Methods of tensors."""

ATTRIBUTES = frozenset(("T", "device", "dtype", "mT", "ndim", "shape"))
"""Attributes of a tensor that getattr may read."""

CONSTANTS = {
    "dtype": _under("", "bfloat16 bool float16 float32 float64 int16 int32 int64 int8 uint8"),
    "device": frozenset(("cpu",)),
    "layout": frozenset(("strided",)),
    "memory_format": frozenset(("channels_last", "contiguous_format", "preserve_format")),
}
"""Values that have no form in JSON, by the key of the object that stands for one."""
