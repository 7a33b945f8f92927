"""The Godot demo and the Unity package hold together: every file that one names is there. No engine runs here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

_CLIENTS = Path(__file__).parents[2] / "clients"
_GODOT = _CLIENTS / "godot"
_UNITY = _CLIENTS / "unity" / "com.lorekeeper.client"
_SCENES = sorted(_GODOT.rglob("*.tscn"))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "file", [_GODOT / "project.godot", *_SCENES, *_GODOT.rglob("*.gd")], ids=lambda file: file.name
)
def test_every_resource_that_a_godot_file_names_is_there(file: Path) -> None:
    named = re.findall(r'"\*?res://([^"]+\.\w+)"', _text(file))
    assert [name for name in named if not (_GODOT / name).exists()] == []


@pytest.mark.parametrize("scene", _SCENES, ids=lambda scene: scene.name)
def test_a_scene_counts_its_resources_and_uses_each(scene: Path) -> None:
    text = _text(scene)
    declared = re.findall(r'\[ext_resource [^\]]*id="([^"]+)"', text)
    used = set(re.findall(r'ExtResource\("([^"]+)"\)', text))
    assert set(declared) == used
    assert f"load_steps={len(declared) + 1} " in text


@pytest.mark.parametrize("scene", _SCENES, ids=lambda scene: scene.name)
def test_a_scene_connects_signals_to_methods_of_its_script(scene: Path) -> None:
    script = _text(_GODOT / re.findall(r'path="res://([^"]+\.gd)"', _text(scene))[0])
    methods = re.findall(r'\[connection [^\]]*method="([^"]+)"', _text(scene))
    assert [method for method in methods if f"func {method}(" not in script] == []


def test_scripts_call_and_connect_only_what_the_add_on_has() -> None:
    add_on = "".join(_text(file) for file in (_GODOT / "addons" / "lorekeeper").glob("*.cs"))
    scripts = "".join(_text(file) for folder in ("demo", "self_test") for file in (_GODOT / folder).glob("*.gd"))
    called = set(re.findall(r"\b(?:Lorekeeper|_npc|_speaker|npc)\.([A-Z]\w+)", scripts))
    connected = set(re.findall(r'(?:connect\(|Signal\(\w+, )"([A-Z]\w+)"', scripts))
    assert [name for name in called if not re.search(rf"public \w+ {name}\b", add_on)] == []
    assert [name for name in connected if f"delegate void {name}EventHandler(" not in add_on] == []


def test_no_c_sharp_of_the_add_on_runs_in_the_editor() -> None:
    assert [file.name for file in _GODOT.rglob("*.cs") if "[Tool]" in _text(file)] == []


def test_export_presets_hold_no_secret() -> None:
    secret = re.compile(r"(password|key|identity|user|uuid|token)[^=\n]*=\"[^\"]+\"", re.IGNORECASE)
    assert secret.findall(_text(_GODOT / "export_presets.cfg")) == []


def test_every_asset_of_the_unity_package_has_a_meta_file_with_an_id_of_its_own() -> None:
    assets = [path for path in _UNITY.rglob("*") if path.suffix not in (".meta", ".dll", ".xml.meta")]
    seen = [path for path in assets if not any(part.endswith("~") or part.startswith(".") for part in path.parts)]
    assert [path.name for path in seen if not path.with_name(path.name + ".meta").exists()] == []
    ids = [_text(path).split("guid: ")[1][:32] for path in _UNITY.rglob("*.meta")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("file", [*_UNITY.rglob("*.asmdef"), _UNITY / "package.json"], ids=lambda file: file.name)
def test_the_json_files_of_the_unity_package_can_be_read(file: Path) -> None:
    assert json.loads(_text(file))["name"]


def test_versions_agree() -> None:
    unity = json.loads(_text(_UNITY / "package.json"))
    client = _text(_CLIENTS / "csharp" / "Lorekeeper.Client" / "Lorekeeper.Client.csproj")
    for package, dependency in [
        ("Google.Protobuf", "org.nuget.google.protobuf"),
        ("Grpc.Net.Client", "org.nuget.grpc.net.client"),
    ]:
        assert f'Include="{package}" Version="{unity["dependencies"][dependency]}"' in client
    assert f"<Version>{unity['version']}<" in _text(_CLIENTS / "csharp" / "Directory.Build.props")
    assert f'version="{unity["version"]}"' in _text(_GODOT / "addons" / "lorekeeper" / "plugin.cfg")
