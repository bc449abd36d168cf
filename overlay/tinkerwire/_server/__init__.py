"""The embedded server. Its public names are in ``tinkerwire.local``."""

try:
    import filelock as filelock
    import jsonschema_rs as jsonschema_rs
    import zstandard as zstandard
except ImportError as error:
    raise ImportError(
        f"the embedded server needs the package {error.name}; install the extra: pip install 'tinkerwire[server]'",
        name=error.name,
    ) from error
