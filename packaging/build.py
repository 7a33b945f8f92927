"""Builds the program that a game ships: one folder, no Python needed, nothing to install.

    python packaging/build.py [--flavour lean|full] [--out dist] [--at-most MEGABYTES]

``lean`` has no embedding, ``full`` has it. Prints the size by part, and ends with 1 where the whole is larger than
``--at-most``. Beside the program stand ``manifest.json`` (SHA-256 of every file), ``sbom.cdx.json`` (CycloneDX) and
``licences/``.

Two builds of one commit on one machine with one Python have the same bytes, as far as PyInstaller allows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import left_out
from shipped import Part, bill_of_materials, copy_licences, parts_of

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "packaging"
NAME = "lorekeeper"
# Found by name at run time or imported by compiled code, so that PyInstaller cannot see them.
LAZY_PACKAGES = ("sidecar", "grpc_health", "google.rpc")
LAZY_MODULES = ("pkgutil",)
# The catalogue entry of the default model, for a build that embeds.
MODEL_DATA = ("sidecar/embedding/data",)
# Else the system's language would decide how names of files and output are read, as it does for a plain Python.
UTF8_MODE = ("--python-option", "X utf8_mode=1")
SHOWN_PARTS = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flavour", choices=("lean", "full"), default="lean")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--at-most", type=float, metavar="MEGABYTES", default=float("inf"))
    options = parser.parse_args()
    folder = build(options.flavour, options.out.resolve())
    print(f"{folder}: {megabytes(folder):.1f} MB")
    for part, size in sizes(folder).most_common(SHOWN_PARTS):
        print(f"  {size / 1e6:>7.1f} MB  {part}")
    if megabytes(folder) > options.at_most:
        sys.exit(f"larger than the {options.at_most:.0f} MB that it may have")


def build(flavour: str, out: Path) -> Path:
    """The folder of a finished build."""
    with tempfile.TemporaryDirectory() as work:
        run_pyinstaller(flavour, out, Path(work))
        parts = parts_of(Path(work))
    folder = out / NAME
    left_out.remove_unread(folder / "_internal")
    strip_symbols(folder)
    copy_licences(parts, folder / "licences", ROOT / "LICENSE")
    (folder / "sbom.cdx.json").write_text(bill_of_materials(parts, int(commit_time())), encoding="utf-8")
    write_manifest(folder, flavour, parts)
    return folder


def run_pyinstaller(flavour: str, out: Path, work: Path) -> None:
    """PyInstaller in a process of its own, with everything fixed that could differ between two builds."""
    embedding = flavour == "full"
    command = [sys.executable, "-m", "PyInstaller", str(HERE / "entry.py"), "--onedir", "--noconfirm", "--noupx"]
    command += ["--name", NAME, "--distpath", str(out), "--workpath", str(work), "--specpath", str(work)]
    command += ["--log-level", "WARN", "--clean", *UTF8_MODE]
    for package in LAZY_PACKAGES:
        command += ["--collect-submodules", package]
    for module in LAZY_MODULES:
        command += ["--hidden-import", module]
    for module in left_out.modules(embedding=embedding):
        command += ["--exclude-module", module]
    for data in MODEL_DATA if embedding else ():
        command += ["--add-data", f"{ROOT / data}:{data}"]
    command += windows_options(work) if sys.platform == "win32" else []
    shutil.rmtree(out / NAME, ignore_errors=True)
    environment = {**os.environ, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": commit_time()}
    subprocess.run(command, check=True, env=environment)


def strip_symbols(folder: Path) -> None:
    """Take debug symbols out of libraries (Linux), but for those that wheels have packed: stripping breaks those."""
    if not sys.platform.startswith("linux") or not shutil.which("strip"):
        return
    for library in sorted(folder.rglob("*.so*")):
        if library.is_file() and not library.is_symlink() and not library.parent.name.endswith(".libs"):
            subprocess.run(["strip", "--strip-unneeded", "-p", str(library)], check=True)


def windows_options(work: Path) -> list[str]:
    """An icon, a version resource, and a console that no player sees (a console program keeps its pipes)."""
    from version_resource import version_resource

    resource = work / "version.txt"
    resource.write_text(version_resource(), encoding="utf-8")
    return ["--icon", str(HERE / "icon.ico"), "--version-file", str(resource), "--hide-console", "hide-early"]


def commit_time() -> str:
    """When the present commit was made, in Unix seconds; 0 outside of a checkout."""
    shown = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return shown.stdout.strip() or "0"


def write_manifest(folder: Path, flavour: str, parts: list[Part]) -> None:
    """Every file with its size and hash, and what the program is made of."""
    files = {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = {
        "program": NAME,
        "flavour": flavour,
        "python": ".".join(map(str, sys.version_info[:3])),
        "platform": sys.platform,
        "parts": {part.name: part.version for part in parts},
        "files": files,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sizes(folder: Path) -> Counter[str]:
    """Bytes by what they belong to: a folder of the build, or a file that lies alone."""
    counted: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            inside = path.relative_to(folder).parts
            counted["/".join(inside[:2] if inside[0] == "_internal" else inside[:1])] += path.stat().st_size
    return counted


def megabytes(folder: Path) -> float:
    return sum(sizes(folder).values()) / 1e6


if __name__ == "__main__":
    main()
