"""Mixins: the methods of the models that have any. The contract names the mixin of a schema by ``x-mixin``.

``_converts`` of a mixin lists the fields whose values the mixin normalizes.
"""

from __future__ import annotations

from .checkpoints import CheckpointPathMixin as CheckpointPathMixin
from .checkpoints import SaveSamplerWeightsMixin as SaveSamplerWeightsMixin
from .checkpoints import SaveWeightsMixin as SaveWeightsMixin
from .chunks import DmelChunkMixin as DmelChunkMixin
from .chunks import EncodedTextChunkMixin as EncodedTextChunkMixin
from .chunks import ImageAssetMixin as ImageAssetMixin
from .chunks import ImageBytesMixin as ImageBytesMixin
from .datum import DatumMixin as DatumMixin
from .error_category import ErrorCategoryMixin as ErrorCategoryMixin
from .loss_config import LossConfigMixin as LossConfigMixin
from .model_input import ModelInputMixin as ModelInputMixin
from .sample_compat import SampledSequenceMixin as SampledSequenceMixin
from .sample_compat import SampleResponseMixin as SampleResponseMixin
from .tensor_data import TensorDataMixin as TensorDataMixin
