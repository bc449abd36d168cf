"""All types of the wire, under their official names."""

from tinkerwire_base.list_array import TopkLogprobs as TopkLogprobs
from tinkerwire_generated.models import *  # noqa: F403

# Last, because the models define the same name as a Literal of its values.
from tinkerwire_base.errors import RequestErrorCategory as RequestErrorCategory  # isort: skip
