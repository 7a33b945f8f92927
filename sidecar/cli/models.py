"""``models``: which embedding models there are, which one a daemon would load and why; add, verify, remove."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from sidecar.cli.options import as_json, data_dir
from sidecar.cli.tables import show
from sidecar.embedding.catalogue import Catalogue
from sidecar.embedding.listing import ListedModel, listed
from sidecar.embedding.loading import verified
from sidecar.embedding.manifest import ModelManifest
from sidecar.embedding.model_store import ModelStore
from sidecar.settings import EmbeddingSettings


@click.group()
def models() -> None:
    """List embedding models, add a folder, verify or remove one, tell which one is loaded and why."""


@models.command(name="list")
@data_dir
@as_json
def list_models(data_dir: Path, as_json: bool) -> None:
    """List the models that a daemon on this data folder could load."""
    settings = _settings(data_dir)
    rows = [_row(model) for model in listed(Catalogue(data_dir / "models", settings), settings, {}, {})]
    show(rows, as_json, "No model is there: 'lorekeeper models add FOLDER', or install lorekeeper[minilm].")


@models.command(name="show")
@data_dir
@as_json
def show_selected(data_dir: Path, as_json: bool) -> None:
    """Tell which model a daemon would load, and why."""
    selection = Catalogue(data_dir / "models", _settings(data_dir)).select()
    row = {
        "model": selection.entry.name if selection.entry else "none",
        "location": selection.entry.location if selection.entry else "",
        "why": selection.why,
    }
    show([row], as_json, "")


@models.command()
@data_dir
@as_json
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--name", default="", help="The name to give it.  [default: the folder's own]")
def add(data_dir: Path, as_json: bool, folder: Path, name: str) -> None:
    """Verify a model's FOLDER and copy it into the data folder, whole or not at all."""
    store = _store(data_dir)
    store.sweep()
    manifest = store.add(folder, name or folder.resolve().name)
    _show_files(manifest, as_json)


@models.command()
@data_dir
@as_json
@click.argument("name")
def verify(data_dir: Path, as_json: bool, name: str) -> None:
    """Hash every file of a model and compare it with what it was when it was added."""
    settings = _settings(data_dir)
    entry = Catalogue(data_dir / "models", settings).find(name)
    if entry.folder is None:
        raise click.ClickException("a server's model has no files here")
    _show_files(verified(entry.folder, settings), as_json)


@models.command()
@data_dir
@click.argument("name")
def remove(data_dir: Path, name: str) -> None:
    """Remove a model that was added."""
    _store(data_dir).remove(name)
    click.echo(f"{name} is removed.")


def _store(data_dir: Path) -> ModelStore:
    return ModelStore(data_dir / "models", _settings(data_dir))


def _settings(data_dir: Path) -> EmbeddingSettings:
    """What a daemon on this data folder would use: its file and the environment."""
    from sidecar.daemon.config import ConfigError, load

    file = data_dir / "lorekeeper.toml"
    try:
        return load(file=file if file.exists() else None, environment=os.environ, flags=()).config.embedding
    except ConfigError as error:
        raise click.ClickException(str(error)) from error


def _row(model: ListedModel) -> dict[str, Any]:
    return {
        "name": model.entry.name,
        "source": model.entry.source.value,
        "loaded": "yes" if model.selected else "no",
        "dimensions": model.declared.dimensions if model.declared else "",
        "tokens": model.max_tokens or "",
        "bytes": sum(file.bytes for file in model.files) or "",
        "why": model.problem.message if model.problem else model.why,
    }


def _show_files(manifest: ModelManifest, as_json: bool) -> None:
    rows = [{"file": file.path, "bytes": file.bytes, "sha256": file.sha256} for file in manifest.files]
    show(rows, as_json, "")
    if not as_json:
        click.echo(f"identity: {manifest.identity}")
