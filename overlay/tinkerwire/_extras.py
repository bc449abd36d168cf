"""Packages of the extras, which a bare installation lacks."""

from __future__ import annotations

from importlib import import_module


class MissingPackageError(ImportError):
    """Error of a part that needs a package of an extra; it names the extra."""


def require_packages(purpose: str, extra: str, *packages: str) -> None:
    """Import the packages of an extra.

    Args:
        purpose: the part that needs them, as the subject of the error.
        extra: the extra that has them.
        packages: their import names.

    Raises:
        MissingPackageError: a package cannot be imported.
    """
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise MissingPackageError(
                f"{purpose} needs the package {package}; install the extra: pip install 'tinkerwire[{extra}]'",
                name=package,
            ) from error
