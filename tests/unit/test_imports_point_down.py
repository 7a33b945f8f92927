"""Imports point down: cli → daemon → saves → chat → {compaction, search, memory} → embedding → storage."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import sidecar

PACKAGE = Path(sidecar.__file__).parent
FLOORS = [["storage"], ["embedding"], ["compaction", "search", "memory"], ["chat"], ["saves"], ["daemon"], ["cli"]]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def imported_rooms(file: Path) -> set[str]:
    nodes = ast.walk(ast.parse(file.read_text("utf-8")))
    names = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name.split(".")[1] for name in names if name.startswith("sidecar.")}


@pytest.mark.parametrize("room", FLOOR)
def test_a_room_imports_nothing_from_above(room: str) -> None:
    above = {other for other, floor in FLOOR.items() if floor > FLOOR[room]}
    files = {file: imported_rooms(file) & above for file in (PACKAGE / room).rglob("*.py")}
    assert len(files) > 1
    assert {file.name: rooms for file, rooms in files.items() if rooms} == {}
