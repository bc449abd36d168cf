"""All types of the wire, under their official names."""

from tinkerwire_base.errors import RequestErrorCategory as RequestErrorCategory
from tinkerwire_generated.models import *  # noqa: F403
