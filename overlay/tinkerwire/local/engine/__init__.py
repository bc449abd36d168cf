"""The engine of the embedded server: a small byte-level language model in numpy that really trains."""

from tinkerwire.local.engine.base import BaseModel as BaseModel
from tinkerwire.local.engine.base import base_model as base_model
from tinkerwire.local.engine.config import BASE_MODELS as BASE_MODELS
from tinkerwire.local.engine.config import END_OF_TEXT as END_OF_TEXT
from tinkerwire.local.engine.config import LoraSettings as LoraSettings
from tinkerwire.local.engine.config import ModelConfig as ModelConfig
from tinkerwire.local.engine.errors import EngineError as EngineError
from tinkerwire.local.engine.example import Example as Example
from tinkerwire.local.engine.lora import Adapter as Adapter
from tinkerwire.local.engine.losses import LOSSES as LOSSES
from tinkerwire.local.engine.sampler import SampledSequence as SampledSequence
from tinkerwire.local.engine.sampler import Sampler as Sampler
from tinkerwire.local.engine.sampler import Samples as Samples
from tinkerwire.local.engine.training import LoraModel as LoraModel
from tinkerwire.local.engine.training import LossResult as LossResult
