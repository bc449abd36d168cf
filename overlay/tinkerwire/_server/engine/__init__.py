"""The engine of the embedded server: a small, trainable, byte-level language model in numpy."""

from tinkerwire._server.engine.base import BaseModel as BaseModel
from tinkerwire._server.engine.base import base_model as base_model
from tinkerwire._server.engine.config import BASE_MODELS as BASE_MODELS
from tinkerwire._server.engine.config import END_OF_TEXT as END_OF_TEXT
from tinkerwire._server.engine.config import LoraSettings as LoraSettings
from tinkerwire._server.engine.config import ModelConfig as ModelConfig
from tinkerwire._server.engine.decoding import SampledSequence as SampledSequence
from tinkerwire._server.engine.errors import EngineError as EngineError
from tinkerwire._server.engine.example import Example as Example
from tinkerwire._server.engine.example import require_length as require_length
from tinkerwire._server.engine.lora import Adapter as Adapter
from tinkerwire._server.engine.losses import LOSSES as LOSSES
from tinkerwire._server.engine.sampler import Sampler as Sampler
from tinkerwire._server.engine.sampler import Samples as Samples
from tinkerwire._server.engine.training import LoraModel as LoraModel
from tinkerwire._server.engine.training import LossResult as LossResult
