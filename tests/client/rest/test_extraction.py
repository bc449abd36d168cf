"""Tests of the extraction of archives: unsafe, damaged and oversized ones are rejected."""

from __future__ import annotations

import gzip
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw
from support.checkpoint_archives import download, make_tar, make_zip, store_archive
from support.scripted import ScriptedResponse, ScriptedServer
from tinkerwire._rest.extraction import check_relative_path, extract_archive

pytestmark = pytest.mark.timeout(120)


def make_header(**attributes: Any) -> bytes:
    info = tarfile.TarInfo("a")
    for attribute, value in attributes.items():
        setattr(info, attribute, value)
    return info.tobuf(tarfile.GNU_FORMAT)


ENCRYPTED = make_zip({"a": b"1"})
"""A zip with the flag of encryption in both of its headers."""
for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
    offset = ENCRYPTED.index(signature) + place
    ENCRYPTED = ENCRYPTED[:offset] + b"\1" + ENCRYPTED[offset + 1 :]
BOMB = make_tar({"zeros": bytes(10_000_000)}, "w:gz")
TWICE = make_tar({"a": b"1", "./a": b"2"})
UNSAFE: list[tuple[bytes, str]] = [
    (make_tar({"../a": b""}), "unsafe file name"),
    (make_tar({"a/../../b": b""}), "unsafe file name"),
    (make_tar({"/etc/passwd": b""}), "unsafe file name"),
    (make_tar({"..": b""}), "unsafe file name"),
    (make_tar({"C:a": b""}), "unsafe file name"),
    (make_tar({"a\\..\\..\\b": b""}), "unsafe file name"),
    (make_tar({"x" * 600: b""}), "unsafe file name"),
    (make_tar({"a": b""}, type=tarfile.SYMTYPE, linkname="/etc"), "link or device"),
    (make_tar({"a": b""}, type=tarfile.LNKTYPE, linkname="b"), "link or device"),
    (make_tar({"a": b""}, type=tarfile.FIFOTYPE), "link or device"),
    (make_tar({"a": b""}, type=tarfile.CHRTYPE), "link or device"),
    (make_zip({"../a": b""}), "unsafe file name"),
    (BOMB, "more than 100000 bytes"),
    (TWICE, "twice"),
    (make_tar({"a": bytes(5000)})[:2000], "cannot be read|ends early"),
    (b"neither tar nor zip", "cannot be read"),
    (make_tar({"x" * 256: b""}), "unsafe file name"),
    (make_tar({"a\x1b[31m": b""}), "unsafe file name"),
    (make_tar({"A": b"1", "a": b"2"}), "twice"),
    (make_tar({"a": b"1", "a/b": b"2"}), "twice"),
    (make_tar({"a/b": b"1", "a": b"2"}), "twice"),
    (make_tar({".": b"1"}), "twice"),
    # The end of the tar is missing after a whole member.
    (make_tar({"a": bytes(500), "b": b"2"})[:1024], "cannot be read"),
    (gzip.compress(make_tar({"a": bytes(500)}) + bytes(20_000_000)), "after its end"),
    (gzip.compress(make_tar({"a": bytes(500)})[:1024] + b"?" * 2000), "cannot be read"),
    (gzip.compress(make_header(type=tarfile.XHDTYPE, size=3 * 10**9)), "cannot be read"),
    (make_header(size=-600) + bytes(2000), "size -600"),
    (ENCRYPTED, "encrypted"),
]


@pytest.mark.parametrize(("archive", "reason"), UNSAFE, ids=[reason for _, reason in UNSAFE])
def test_unsafe_archive_is_rejected(
    archive: bytes, reason: str, server: ScriptedServer, rest: tw.RestClient, tmp_path: Path
) -> None:
    """No file appears outside the hidden folder, and the checkpoint's folder does not appear."""
    store_archive(server, lambda _: ScriptedResponse(archive))
    with pytest.raises(tw.TinkerError, match=reason):
        download(rest, tmp_path / "inner" / "out", max_bytes=100_000)
    assert not (tmp_path / "inner" / "out").exists()
    assert [path.name for path in tmp_path.rglob("*")] == ["inner"]
    store_archive(server, lambda _: ScriptedResponse(make_tar({"a": b"right"})))
    assert download(rest, tmp_path / "inner" / "out").files == ("a",)


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_damage_of_a_compressed_archive_is_found(mode: str, tmp_path: Path) -> None:
    """Wherever bytes are damaged or missing, the content is complete and right, or there is an error."""
    files = {"a": random.Random(0).randbytes(30_000), "b": b"x" * 30_000, "c": b""}
    content = make_tar(files, mode)
    positions = range(0, len(content), len(content) // 25)
    damaged = [content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :] for at in positions]
    errors = 0
    for number, archive in enumerate([*damaged, *(content[:at] for at in positions), content[:-1]]):
        file = tmp_path / f"{number}.tar"
        file.write_bytes(archive)
        try:
            extract_archive(file, tmp_path / str(number), max_bytes=100_000)
        except tw.TinkerError:
            errors += 1
        else:
            assert {name: (tmp_path / str(number) / name).read_bytes() for name in files} == files
    assert errors > 25


def test_archive_with_too_many_members_is_rejected(
    server: ScriptedServer, rest: tw.RestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tinkerwire._rest.extraction.MAX_FILES", 3)
    store_archive(server, lambda _: ScriptedResponse(make_tar({str(number): b"" for number in range(4)})))
    with pytest.raises(tw.TinkerError, match="more than 3 members"):
        download(rest, tmp_path / "out")


@pytest.mark.parametrize("name", ["a", "a/b", "./a", "a//b", "."])
def test_safe_names_stay_below_the_folder(name: str) -> None:
    assert ".." not in check_relative_path(name).parts
