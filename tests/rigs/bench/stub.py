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
from typing import NamedTuple

from tests.rigs.official.process import ServerProcess, find_free_port

from tinkerwire import types
from tinkerwire._server.http.protobuf import encode_result
from tinkerwire_base.model import Model

MODULES = Path("/usr/lib/nginx/modules")
PACKAGES = ["nginx-light", "libnginx-mod-http-lua"]
SAMPLE_TOKENS = 256
DATUM_TOKENS = 4096


class StubUrls(NamedTuple):
    """Base URLs of the stub: of a JSON server without client/config, and of a server of the newest wire."""

    json: str
    newest: str


@contextlib.contextmanager
def stub_server() -> Iterator[StubUrls]:
    """Run the stub and yield its base URLs."""
    nginx = _find_nginx()
    with tempfile.TemporaryDirectory(prefix="tinkerwire-stub-") as name:
        folder = Path(name)
        # nginx started by root gives its workers to another user, who could not read this folder.
        user = "user root;" if os.geteuid() == 0 else ""
        port, newest_port = find_free_port(), find_free_port()
        conf = Path(__file__).with_name("nginx.conf.in").read_text()
        values = {
            "USER": user,
            "MODULES": str(MODULES),
            "DIR": name,
            "PORT": str(port),
            "NEWEST_PORT": str(newest_port),
        }
        for key, value in values.items():
            conf = conf.replace(f"@{key}@", value)
        (folder / "nginx.conf").write_text(conf)
        _write_results(folder)
        urls = StubUrls(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{newest_port}")
        command = [nginx, "-p", name, "-e", "stderr", "-c", str(folder / "nginx.conf")]
        with ServerProcess(command, log=folder / "log.txt") as server:
            server.wait_until("healthy", lambda: is_healthy(urls.newest), timeout_s=10)
            yield urls


def _write_results(folder: Path) -> None:
    """Write the results that futures give; floats are float32 values in full, as torch servers send them."""
    logprobs = [_round_to_float32(-0.01 - (i * 7919 % 1000) / 317) for i in range(DATUM_TOKENS)]
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
    output = {"logprobs": types.TensorData(data=logprobs, dtype="float32", shape=[DATUM_TOKENS])}
    messages: dict[str, Model] = {
        "sample": types.SampleResponse(sequences=[types.SampledSequence(**sequence)]),
        "datum": _make_output([output], {}),
        "output_end": _make_output([], {"loss:sum": 12.5}),
    }
    for kind, model in messages.items():
        (folder / f"{kind}.bin").write_bytes(encode_result(model))


def _make_output(outputs: list[dict[str, types.TensorData]], metrics: dict[str, float]) -> types.ForwardBackwardOutput:
    return types.ForwardBackwardOutput(loss_fn_output_type="TensorData", loss_fn_outputs=outputs, metrics=metrics)


def _round_to_float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def is_healthy(url: str) -> bool:
    """Return whether a server of the bench passes its health check."""
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _find_nginx() -> str:
    """Return the path of nginx, installing Debian's packages when they are missing and we may."""
    if not _is_installed():
        if os.geteuid() == 0 and shutil.which("apt-get"):
            for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
                subprocess.run(["apt-get", "-q", *command], check=False, capture_output=True)
        if not _is_installed():
            raise SystemExit(
                f"start the stub server: nginx with its Lua module is not here; install Debian's packages: "
                f"apt-get install {' '.join(PACKAGES)}"
            )
    return _locate_nginx() or ""


def _is_installed() -> bool:
    return _locate_nginx() is not None and (MODULES / "ngx_http_lua_module.so").exists()


def _locate_nginx() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
