"""Version of this package, and default wire version of its server."""

from tinkerwire_base.conversion.versioning import parse_version, version_before
from tinkerwire_generated.availability import PROTOBUF_RESULT_VERSIONS, VERSIONS

__version__ = "0.1.0"

DEFAULT_WIRE = version_before(
    VERSIONS, min((since for since, _ in PROTOBUF_RESULT_VERSIONS.values()), key=parse_version)
)
"""Default wire version of the embedded server: the newest version whose bodies are all JSON."""
