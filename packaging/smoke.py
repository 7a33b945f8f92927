"""Runs the service tests against a built program, as it is shipped and in the places where games put it.

    python packaging/smoke.py dist/lorekeeper/lorekeeper [--quick] [pytest arguments]

1. All of ``tests/service`` that its flavour can (and the C# tests, where ``dotnet`` is found) against the program.
2. What a game does first (``--quick``: only this), from a read-only folder with blanks and letters of many scripts,
   with an empty environment: no home folder, no PATH, so no Python to be found.
3. The demo as another user without a home folder, where this one may become another (root on Linux).

Says what it could not run here. Ends with 1 where anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST_STEPS = ("tests/service/test_shipped_program.py",)
EVERYTHING = ("tests/service",)
NOBODY = "nobody"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--quick", action="store_true")
    options, arguments = parser.parse_known_args()
    program = options.program.resolve()
    with tempfile.TemporaryDirectory(prefix="lorekeeper-smoke-") as folder:
        failed = [name for name, passed in runs(program, Path(folder), arguments, quick=options.quick) if not passed]
    for name in failed:
        print(f"FAILED: {name}")
    sys.exit(1 if failed else 0)


def runs(program: Path, folder: Path, arguments: list[str], *, quick: bool) -> Iterator[tuple[str, bool]]:
    """Each run's name and whether it passed, one after the other."""
    if not quick:
        yield "service tests", pytest([str(program)], EVERYTHING, [*able(program), *arguments])
        yield "C# tests", csharp(program)
    moved = moved_away(program, folder)
    bare = ["env", "-i", str(moved)] if os.name == "posix" else [str(moved)]
    yield "from a strange, read-only folder with an empty environment", pytest(bare, FIRST_STEPS, arguments)
    if os.name == "posix" and os.geteuid() == 0 and shutil.which("runuser"):
        yield "as another user", demo_as_nobody(moved, folder)
    else:
        print("NOT RUN: as another user; that needs root on Linux")


def able(program: Path) -> tuple[str, ...]:
    """Arguments that leave out the tests of what the program's flavour does not have."""
    flavour = json.loads((program.parent / "manifest.json").read_text("utf-8"))["flavour"]
    return ("-m", "not embeds") if flavour == "lean" else ()


def pytest(command: list[str], tests: tuple[str, ...], arguments: list[str]) -> bool:
    """Whether the tests pass against the daemon that ``command`` starts."""
    environment = {**os.environ, "LOREKEEPER_COMMAND": shlex.join(command)}
    run = subprocess.run([sys.executable, "-m", "pytest", *tests, *arguments], cwd=ROOT, env=environment, check=False)
    return run.returncode == 0


def csharp(program: Path) -> bool:
    """Whether the C# tests pass against the program; True, and said, where there is nothing to run them with."""
    script = ROOT / "scripts" / "test-csharp"
    if not script.is_file() or not shutil.which("dotnet"):
        print("NOT RUN: the C# tests; that needs dotnet")
        return True
    environment = {**os.environ, "LOREKEEPER_COMMAND": shlex.join([str(program)])}
    return subprocess.run([str(script)], cwd=ROOT, env=environment, check=False).returncode == 0


def moved_away(program: Path, folder: Path) -> Path:
    """A read-only copy of the program's folder under a name with blanks and letters of many scripts."""
    folder.chmod(0o755)
    place = folder / "Željko 田中　テスト émoji🎮" / program.parent.name
    shutil.copytree(program.parent, place)
    for path in (place, *place.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    return place / program.name


def demo_as_nobody(program: Path, folder: Path) -> bool:
    """Whether the demo, which starts a daemon and calls it, works for a user who owns nothing here."""
    temporary = folder / "of nobody"
    temporary.mkdir()
    shutil.chown(temporary, NOBODY)
    bare = ["runuser", "-u", NOBODY, "--", "env", "-i", f"TMPDIR={temporary}", "HOME=/nonexistent"]
    played = subprocess.run([*bare, str(program), "demo", "--json"], capture_output=True, text=True, check=False)
    print(f"{len(json.loads(played.stdout))} calls answered" if played.returncode == 0 else played.stderr)
    return played.returncode == 0


if __name__ == "__main__":
    main()
