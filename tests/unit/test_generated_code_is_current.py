"""The Python code in sidecar/gen is what scripts/proto makes of protos/ today."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def code_in(folder: Path) -> dict[str, str]:
    """Every generated file by its path within the folder, without what Python caches beside it."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for pattern in ("*.py", "*.pyi")
        for path in folder.rglob(pattern)
    }


def test_generated_code_is_what_the_contract_makes(tmp_path: Path):
    environment = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["bash", "scripts/proto", "generate", str(tmp_path)], cwd=ROOT, env=environment, check=True)
    fresh, kept = code_in(tmp_path), code_in(ROOT / "sidecar" / "gen")
    assert fresh.keys() == kept.keys(), "run scripts/proto generate"
    stale = [name for name, text in fresh.items() if kept[name] != text]
    assert stale == [], "run scripts/proto generate"


def test_generated_code_keeps_the_names_of_the_contract():
    from sidecar.gen.lorekeeper.v1 import memory_pb2

    assert memory_pb2.DESCRIPTOR.name == "lorekeeper/v1/memory.proto"
    assert memory_pb2.DESCRIPTOR.package == "lorekeeper.v1"
