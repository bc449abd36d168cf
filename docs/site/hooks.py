"""Pages of the site that are not files below docs/: guides at the root, and the reference, which code determines."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import reference
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
GUIDES = {
    "ARCHITECTURE.md": "contributing/architecture.md",
    "CONTRIBUTING.md": "contributing/contributing.md",
    "CHANGELOG.md": "contributing/changelog.md",
    "schema/README.md": "contributing/contract.md",
}
"""Pages of the repository outside docs/, and their places on the site."""
CODE = {
    "overlay/tinkerwire/__init__.py": "reference/settings.md",
    "overlay/tinkerwire/_cli/commands.py": "reference/command-line.md",
    "overlay/tinkerwire/_futures/future.py": "reference/futures.md",
    "overlay/tinkerwire/_service.py": "reference/clients.md",
    "overlay/tinkerwire/_conformance/catalogue.py": "reference/requirements.md",
    "overlay/tinkerwire/auth.py": "reference/auth.md",
    "overlay/tinkerwire/conformance.py": "reference/conformance.md",
    "overlay/tinkerwire/dropin/__init__.py": "reference/dropin.md",
    "overlay/tinkerwire/local.py": "reference/local.md",
    "overlay/tinkerwire/testing.py": "reference/testing.md",
    "overlay/tinkerwire/training.py": "reference/training.md",
    "overlay/tinkerwire/types.py": "reference/types.md",
    "overlay/tinkerwire_base/errors.py": "reference/error-classes.md",
}
"""Files that pages link to in the repository, and the generated pages that replace them on the site."""
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the guides and the pages of the reference."""
    for source, place in GUIDES.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text()))
    for place, text in reference.create_pages().items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Resolve links that lead out of docs/."""
    place = page.file.src_uri
    source = {target: name for name, target in GUIDES.items()}.get(place)
    folder = (ROOT / source).parent if source else (ROOT / "docs" / place).parent

    def resolve(match: re.Match[str]) -> str:
        path = (folder / match["path"]).resolve()
        if not path.is_relative_to(ROOT) or not path.exists():
            return match[0]
        name = path.relative_to(ROOT).as_posix()
        target = (GUIDES | CODE).get(name) or name.removeprefix("docs/")
        if files.get_file_from_path(target) is None:
            # A file of the repository without a page.
            return match["text"] if "`" in match["text"] else f"`{match['text']}`"
        up = "../" * place.count("/")
        return f"[{match['text']}]({up}{target}{match['anchor'] or ''})"

    return LINK.sub(resolve, markdown)
