"""nginx as the server of the bench: a fixed body at once for every call, so that the client is measured."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.rigs.official.process import ServerProcess, free_port

MODULES = Path("/usr/lib/nginx/modules")
PACKAGES = ["nginx-light", "libnginx-mod-http-lua"]
SAMPLE_TOKENS = 256
DATUM_TOKENS = 4096


@contextlib.contextmanager
def stub_server() -> Iterator[str]:
    """Run the stub and yield its base URL."""
    nginx = _find_nginx()
    with tempfile.TemporaryDirectory(prefix="tinkerwire-stub-") as name:
        folder = Path(name)
        # nginx started by root gives its workers to another user, who could not read this folder.
        user = "user root;" if os.geteuid() == 0 else ""
        port = free_port()
        conf = Path(__file__).with_name("nginx.conf.in").read_text()
        for key, value in {"USER": user, "MODULES": str(MODULES), "DIR": name, "PORT": str(port)}.items():
            conf = conf.replace(f"@{key}@", value)
        (folder / "nginx.conf").write_text(conf)
        _write_results(folder)
        url = f"http://127.0.0.1:{port}"
        command = [nginx, "-p", name, "-e", "stderr", "-c", str(folder / "nginx.conf")]
        with ServerProcess(command, log=folder / "log.txt") as server:
            server.wait_until("answering", lambda: is_answering(url), timeout_s=10)
            yield url


def _write_results(folder: Path) -> None:
    """Write the results that futures give; floats are float32 values in full, as torch servers send them."""
    logprobs = [_float32(-0.01 - (i * 7919 % 1000) / 317) for i in range(DATUM_TOKENS)]
    sequence = {
        "stop_reason": "length",
        "tokens": [(i * 7919) % 150_000 for i in range(SAMPLE_TOKENS)],
        "logprobs": logprobs[:SAMPLE_TOKENS],
    }
    results = {
        "model": {"type": "create_model", "model_id": "model-1"},
        "optim": {"metrics": {}},
        "sample": {"type": "sample", "sequences": [sequence]},
        "datum": {"logprobs": {"data": logprobs, "dtype": "float32", "shape": [DATUM_TOKENS]}},
    }
    for kind, value in results.items():
        (folder / f"{kind}.json").write_text(json.dumps(value, separators=(",", ":")))


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def is_answering(url: str) -> bool:
    """Return whether a server of the bench answers its health check."""
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _find_nginx() -> str:
    """Return the path of nginx, installing Debian's packages when they are missing and we may."""
    if not _installed():
        if os.geteuid() == 0 and shutil.which("apt-get"):
            for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
                subprocess.run(["apt-get", "-q", *command], check=False, capture_output=True)
        if not _installed():
            raise SystemExit(
                f"start the stub server: nginx with its Lua module is not here; install Debian's packages: "
                f"apt-get install {' '.join(PACKAGES)}"
            )
    return _nginx() or ""


def _installed() -> bool:
    return _nginx() is not None and (MODULES / "ngx_http_lua_module.so").exists()


def _nginx() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
