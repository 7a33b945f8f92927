"""What a build is made of: the distributions whose modules PyInstaller took, their licences, a bill of materials."""

from __future__ import annotations

import ast
import shutil
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

_LICENCE_NAMES = ("licen", "copying", "notice", "authors", "thirdparty")


@dataclass(frozen=True)
class Part:
    """One distribution in the program."""

    name: str
    version: str
    licence: str


def parts_of(work: Path) -> list[Part]:
    """The distributions behind the modules that PyInstaller's analysis lists below ``work``, by name."""
    known = packages_distributions()
    modules = {name.partition(".")[0] for name in _analysed(work)}
    names = {found for module in modules for found in known.get(module, ())}
    return sorted((_part(distribution(name)) for name in names), key=lambda part: part.name.lower())


def _analysed(work: Path) -> set[str]:
    """The first column of the analysis: names of modules and files."""
    (listing,) = work.rglob("Analysis-00.toc")
    names: set[str] = set()
    for node in ast.walk(ast.parse(listing.read_text("utf-8"), mode="eval")):
        if isinstance(node, ast.Tuple) and len(node.elts) >= 3 and isinstance(node.elts[0], ast.Constant):
            names.add(str(node.elts[0].value).replace("/", "."))
    return names


def _part(found: Distribution) -> Part:
    meta = found.metadata
    classifiers = [c.rpartition(" :: ")[2] for c in meta.get_all("Classifier") or () if c.startswith("License ::")]
    stated = meta.get("License-Expression") or (meta.get("License") or "").partition("\n")[0]
    return Part(meta["Name"], found.version, stated or " AND ".join(classifiers) or "see licences/")


def copy_licences(parts: list[Part], target: Path, own: Path) -> None:
    """The licence texts of every part, of Python and of Lorekeeper, in a folder each."""
    shutil.rmtree(target, ignore_errors=True)
    _copy(own, target / "lorekeeper" / own.name)
    python = next((p for p in (Path(sys.base_prefix, "LICENSE.txt"), *_python_licences()) if p.is_file()), None)
    if python is not None:
        _copy(python, target / "python" / "LICENSE.txt")
    for part in parts:
        for file in distribution(part.name).files or ():
            if any(name in file.name.lower() for name in _LICENCE_NAMES) and file.suffix not in (".py", ".pyc"):
                source = Path(str(file.locate()))
                if source.is_file():
                    _copy(source, target / part.name / source.name)


def _python_licences() -> list[Path]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return [Path(sys.base_prefix, "lib", version, "LICENSE.txt"), Path(sys.base_prefix, "LICENSE")]


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def bill_of_materials(parts: list[Part], made: int) -> str:
    """CycloneDX 1.6 JSON; ``made`` is the time that it bears, in Unix seconds, so that the same parts give the same."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion
    from packageurl import PackageURL

    listed = " ".join(f"{part.name}=={part.version}" for part in parts)
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, listed))
    bom.metadata.timestamp = datetime.fromtimestamp(made, UTC)
    for part in parts:
        url = PackageURL("pypi", None, part.name.lower(), part.version)
        bom.components.add(
            Component(
                type=ComponentType.LIBRARY, name=part.name, version=part.version, purl=url, bom_ref=url.to_string()
            )
        )
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1) + "\n"
