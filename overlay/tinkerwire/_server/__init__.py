"""The embedded server. Its public names are in ``tinkerwire.local``."""

from tinkerwire._extras import require_packages

require_packages("the embedded server", "server", "filelock", "jsonschema_rs", "zstandard")
