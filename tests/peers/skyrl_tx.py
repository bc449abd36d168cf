"""The server skyrl-tx 0.3.0: made, started with a tiny model on a free port, and stopped."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.official.process import ServerProcess, free_port
from tests.official.venv import ROOT, ensure_venv

NAME = "skyrl-tx 0.3.0"
BASE_MODEL = "tiny-qwen3"  # relative to the server's working folder
HERE = Path(__file__).parent
LOG = ROOT / "build" / "peers" / "skyrl-tx.log"
BACKEND = '{"max_lora_adapters": 16, "max_lora_rank": 8, "train_micro_batch_size": 8, "sample_max_num_sequences": 8}'


@contextlib.contextmanager
def skyrl_tx() -> Iterator[str]:
    """Run the server until its engine is ready and yield its base URL."""
    python = ensure_venv("skyrl-tx", HERE / "requirements-skyrl-tx-0.3.0.txt", installer="pip")
    uv = python.with_name("uv")
    shutil.copyfile(HERE / "uv_stand_in.sh", uv)
    uv.chmod(0o755)
    model = _tiny_model(python)
    with tempfile.TemporaryDirectory(prefix="tinkerwire-peer-") as name:
        folder = Path(name)
        (folder / BASE_MODEL).symlink_to(model)
        port = free_port()
        command = [
            *(str(uv), "run", "--extra", "tinker", "-m", "tx.tinker.api"),
            *("--host", "127.0.0.1", "--port", str(port), "--base-model", BASE_MODEL),
            *("--backend", "jax", "--backend-config", BACKEND),
            *("--checkpoints-base", f"{folder}/checkpoints", "--database-url", f"sqlite:///{folder}/tinker.db"),
        ]
        env = os.environ | {
            "PATH": f"{python.parent}:{os.environ['PATH']}",
            "JAX_PLATFORMS": "cpu",
            "HF_HUB_OFFLINE": "1",
        }
        url = f"http://127.0.0.1:{port}"
        with ServerProcess(command, log=LOG, env=env, cwd=folder) as server:
            server.wait_until("healthy", lambda: _healthy(url), timeout_s=120)
            server.wait_until(
                "ready with its engine",
                lambda: "Starting background engine..." in server.output(),
                timeout_s=180,
            )
            yield url


def _tiny_model(python: Path) -> Path:
    """Return the folder of the tiny model, making it the first time."""
    folder = ROOT / "build" / "peers" / BASE_MODEL
    if not (folder / "config.json").exists():
        subprocess.run([str(python), str(HERE / "tiny_model.py"), str(folder)], check=True, capture_output=True)
    return folder


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/api/v1/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
