"""What is known of each model without loading it: small files are read, nothing is hashed. Blocking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sidecar.embedding.catalogue import Catalogue, ModelEntry, Selection
from sidecar.embedding.layouts import declare
from sidecar.embedding.loading import file_bound
from sidecar.embedding.manifest import ModelDeclaration, ModelManifest
from sidecar.embedding.model_files import ModelFile
from sidecar.errors import LorekeeperError
from sidecar.settings import EmbeddingSettings


@dataclass(frozen=True)
class ListedModel:
    """``declared`` is None for a server and for a folder that cannot be read; ``problem`` says why."""

    entry: ModelEntry
    selected: bool
    why: str
    declared: ModelDeclaration | None = None
    manifest: ModelManifest | None = None
    files: tuple[ModelFile, ...] = ()
    max_tokens: int = 0
    problem: LorekeeperError | None = None


def listed(
    catalogue: Catalogue,
    settings: EmbeddingSettings,
    manifests: Mapping[str, ModelManifest],
    failures: Mapping[str, LorekeeperError],
) -> list[ListedModel]:
    """Every model, by name; ``manifests`` and ``failures`` are what earlier loads found out."""
    selection = catalogue.select()
    return [
        _listed(entry, selection, settings, manifests.get(entry.name), failures.get(entry.name))
        for entry in catalogue.entries()
    ]


def _listed(
    entry: ModelEntry,
    selection: Selection,
    settings: EmbeddingSettings,
    manifest: ModelManifest | None,
    failure: LorekeeperError | None,
) -> ListedModel:
    selected = selection.entry == entry
    why = selection.why if selected else _not_selected(selection)
    if entry.folder is None:
        return ListedModel(entry, selected, why, problem=failure)
    try:
        declared = manifest.declaration if manifest else declare(entry.folder, max_tokens=settings.max_tokens)
        files = manifest.files if manifest else _unhashed(entry, declared, settings)
    except LorekeeperError as error:
        return ListedModel(entry, selected, why, problem=failure or error)
    tokens = min(declared.max_tokens, settings.max_tokens)
    return ListedModel(entry, selected, why, declared, manifest, files, tokens, failure)


def _unhashed(entry: ModelEntry, declared: ModelDeclaration, settings: EmbeddingSettings) -> tuple[ModelFile, ...]:
    assert entry.folder is not None
    sizes = {name: entry.folder.size(name, most=file_bound(declared, name, settings)) for name in declared.files}
    return tuple(ModelFile(name, size, sha256="") for name, size in sizes.items())


def _not_selected(selection: Selection) -> str:
    return f"{selection.entry.name} comes first" if selection.entry else selection.why
