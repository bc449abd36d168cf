"""Version of this package, and default wire version of its server."""

__version__ = "0.1.0"

__all__ = ["DEFAULT_WIRE", "__version__"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    DEFAULT_WIRE: str
    """Default wire version of the embedded server: the newest version whose bodies are all JSON."""
else:

    def __getattr__(name: str) -> object:
        """Compute DEFAULT_WIRE when it is read: the tables of versions take most of the time of an import."""
        if name != "DEFAULT_WIRE":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from tinkerwire_base.conversion.versioning import parse_version, version_before  # noqa: PLC0415
        from tinkerwire_generated.availability import PROTOBUF_RESULT_VERSIONS, VERSIONS  # noqa: PLC0415

        first = min((since for since, _ in PROTOBUF_RESULT_VERSIONS.values()), key=parse_version)
        wire = globals()[name] = version_before(VERSIONS, first)
        return wire
