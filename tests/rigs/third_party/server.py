"""Third-party server: installed in its own environment, started with a tiny model on a free port, stopped."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.rigs.official.process import ServerProcess, find_free_port
from tests.rigs.official.venv import ROOT, ensure_venv

BASE_MODEL = "tiny-qwen3"
"""Name of the tiny model; such names are relative to the server's working folder."""
BUILD = ROOT / "build" / "peers"
FOLDER = Path(__file__).parent
BACKEND = {"max_lora_adapters": 16, "train_micro_batch_size": 8, "sample_max_num_sequences": 8}
MAX_LORA_RANK = 8


def _leave_as_installed(python: Path) -> None:
    """Change nothing."""


@dataclass(frozen=True)
class ThirdPartyServer:
    """One release of one server.

    Args:
        name: name of the package and of the environment.
        version: version of the package; the lock file is requirements-NAME-VERSION.txt.
        module: module that serves the API.
        official: the release of the official SDK that works with it, as the reference.
        is_protobuf: whether it accepts forward_backward as protobuf only.
        pip_options: options of pip for the lock file.
        prepare: function that changes the environment of the given Python; called before every start.
    """

    name: str
    version: str
    module: str
    official: str
    is_protobuf: bool
    pip_options: tuple[str, ...] = ()
    prepare: Callable[[Path], None] = _leave_as_installed

    @property
    def title(self) -> str:
        """Return name and version for reports."""
        return f"{self.name} {self.version}"

    @property
    def model_folder(self) -> Path:
        """Return the folder of the tiny model and its tokenizer, which are there once the server has run."""
        return BUILD / self.name / BASE_MODEL

    @contextlib.contextmanager
    def running(
        self, folder: Path | None = None, base_model: str = BASE_MODEL, max_lora_rank: int = MAX_LORA_RANK
    ) -> Iterator[str]:
        """Run the server until its engine is ready and yield its base URL.

        Args:
            folder: empty folder for its checkpoints and its database; None for a temporary one.
            base_model: the name under which it offers the tiny model.
            max_lora_rank: the largest rank of a model that it takes.
        """
        lock = FOLDER / f"requirements-{self.name}-{self.version}.txt"
        python = ensure_venv(self.name, lock, installer="pip", pip_options=self.pip_options)
        self.prepare(python)
        uv = python.with_name("uv")
        shutil.copyfile(FOLDER / "uv_stand_in.sh", uv)
        uv.chmod(0o755)
        model = _ensure_tiny_model(python, self.model_folder)
        with tempfile.TemporaryDirectory(prefix="tinkerwire-peer-") as name:
            folder = folder or Path(name)
            (folder / base_model).parent.mkdir(parents=True, exist_ok=True)
            (folder / base_model).symlink_to(model)
            port = find_free_port()
            backend = json.dumps({**BACKEND, "max_lora_rank": max_lora_rank})
            command = [
                *(str(uv), "run", "--extra", "tinker", "-m", self.module),
                *("--host", "127.0.0.1", "--port", str(port), "--base-model", base_model),
                *("--backend", "jax", "--backend-config", backend),
                *("--checkpoints-base", f"{folder}/checkpoints", "--database-url", f"sqlite:///{folder}/tinker.db"),
            ]
            env = os.environ | {
                "PATH": f"{python.parent}:{os.environ['PATH']}",
                "JAX_PLATFORMS": "cpu",
                "HF_HUB_OFFLINE": "1",
                # Each new shape compiles for seconds; later runs read what earlier ones compiled.
                "JAX_COMPILATION_CACHE_DIR": str(BUILD / self.name / "compiled"),
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
            }
            env.pop("PYTHONPATH", None)  # ours is of no use there
            url = f"http://127.0.0.1:{port}"
            with ServerProcess(command, log=BUILD / f"{self.name}.log", env=env, cwd=folder) as server:
                server.wait_until("healthy", lambda: _is_healthy(url), timeout_s=120)
                server.wait_until(
                    "ready with its engine",
                    lambda: "Starting background engine..." in server.output(),
                    timeout_s=180,
                )
                yield url


def _ensure_tiny_model(python: Path, folder: Path) -> Path:
    """Return the folder of the tiny model; the server's own libraries create it the first time."""
    if not (folder / "config.json").exists():
        subprocess.run([str(python), str(FOLDER / "tiny_model.py"), str(folder)], check=True, capture_output=True)
    return folder


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/api/v1/healthz", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False
