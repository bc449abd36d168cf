"""Tests of the file format of recordings: torn files, limits, versions, threads and forks."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tinkerwire._tape.tape_file import RecordedExchange, TapeWriter, read_tape


def write(path: Path, count: int) -> None:
    """Write exchanges with binary and text bodies."""
    writer = TapeWriter(path)
    writer.write_server("http://127.0.0.1:1")
    for number in range(count):
        body = b"\xff\x00" if number % 2 else b'{"a":1}'
        writer.write(RecordedExchange(at=writer.start(), method="POST", path=f"/{number}", content=body, status=200))
    writer.close()


def test_tape_returns_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    write(path, 3)
    tape = read_tape(path)
    assert [exchange.path for exchange in tape.exchanges] == ["/0", "/1", "/2"]
    assert [exchange.content for exchange in tape.exchanges] == [b'{"a":1}', b"\xff\x00", b'{"a":1}']
    assert (tape.server, tape.ending) == ("http://127.0.0.1:1", "")


def test_only_the_owner_reads_a_tape(tmp_path: Path) -> None:
    write(tmp_path / "a.tape", 1)
    assert stat.S_IMODE((tmp_path / "a.tape").stat().st_mode) == 0o600


def test_torn_tape_is_read_up_to_the_tear(tmp_path: Path) -> None:
    """At every length, all whole lines are read."""
    path = tmp_path / "a.tape"
    write(path, 3)
    content = path.read_bytes()
    first_line = content.index(b"\n")
    for length in range(first_line, len(content)):
        path.write_bytes(content[:length])
        tape = read_tape(path)
        whole = sum(content.startswith(line, content.index(line)) for line in _lines(content, length))
        assert len(tape.exchanges) == whole
    assert "cut off" in tape.ending


def _lines(content: bytes, length: int) -> list[bytes]:
    """Return the lines of exchanges that end within a length."""
    lines, end = [], 0
    for line in content.split(b"\n"):
        end += len(line) + 1
        if end - 1 <= length and b'"at"' in line:
            lines.append(line)
    return lines


def test_torn_line_of_one_process_spoils_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    write(path, 2)
    path.write_bytes(path.read_bytes()[:-10])
    write(path, 2)
    tape = read_tape(path)
    assert (len(tape.exchanges), tape.torn_lines) == (3, 1)


def test_recording_stops_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TINKERWIRE_RECORD_MAX_BYTES", "600")
    write(tmp_path / "a.tape", 50)
    tape = read_tape(tmp_path / "a.tape")
    assert 0 < len(tape.exchanges) < 50
    assert "maximum size" in tape.ending
    assert (tmp_path / "a.tape").stat().st_size < 700
    assert caplog.text.count("TINKERWIRE_RECORD_MAX_BYTES") == 1


def test_wrong_limit_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINKERWIRE_RECORD_MAX_BYTES", "lots")
    with pytest.raises(ValueError, match="TINKERWIRE_RECORD_MAX_BYTES: expected a number of bytes, got 'lots'"):
        TapeWriter(tmp_path / "a.tape")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not a recording"),
        (b"text", "is not a recording"),
        (b"[]", "is not a recording"),
        (b'{"tinkerwire_tape":2}', "this version reads recordings of format 1, got 2"),
    ],
)
def test_other_files_are_rejected(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "a.tape"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=problem):
        read_tape(path)
    if content:
        with pytest.raises(ValueError, match=problem):
            TapeWriter(path)
        assert path.read_bytes() == content


def test_missing_files_and_folders_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        read_tape(tmp_path / "a.tape")
    with pytest.raises(ValueError, match="cannot be written: No such file"):
        TapeWriter(tmp_path / "gone" / "a.tape")


def test_threads_and_forks_append_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    writer = TapeWriter(path)

    def fill() -> None:
        for _ in range(50):
            writer.write(RecordedExchange(at=writer.start(), method="GET", path="/x" * 500, status=200))

    threads = [threading.Thread(target=fill) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count = 200
    if hasattr(os, "fork"):
        child = os.fork()
        if not child:
            fill()
            os._exit(0)
        fill()
        assert os.waitpid(child, 0)[1] == 0
        count += 100
    tape = read_tape(path)
    assert (len(tape.exchanges), tape.torn_lines) == (count, 0)
    writer.close()
