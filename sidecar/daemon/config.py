"""Where settings come from: a TOML file, then the environment, then flags; the later one wins.

    [memory]                                    lorekeeper.toml
    max_versions = 50
    LOREKEEPER_MEMORY_MAX_VERSIONS=50           environment
    --set memory.max_versions=50                flag

Every value is checked once, here; an error names the setting, where the value came from, and what is allowed.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass
from pathlib import Path
from typing import Any

from sidecar.errors import InvalidInput
from sidecar.settings import Config

_ENVIRONMENT = "LOREKEEPER_"


class ConfigError(Exception):
    """A setting cannot be used; the message says which, from where, and what is allowed."""


@dataclass(frozen=True)
class Given:
    """A value as it was found, not checked yet."""

    value: Any
    origin: str


@dataclass(frozen=True)
class Loaded:
    """The checked configuration, and for each setting that was given where it came from."""

    config: Config
    origins: Mapping[str, str]


def load(*, file: Path | None, environment: Mapping[str, str], flags: Sequence[str]) -> Loaded:
    """The configuration from all three sources. Raises ConfigError."""
    known = {name: field for name, _, field in settings()}
    given: dict[str, Given] = {}
    if file is not None:
        given |= _from_file(file)
    given |= _from_environment(environment, known)
    given |= _from_flags(flags)
    for name, found in given.items():
        if name not in known:
            raise ConfigError(f"there is no setting '{name}' ({found.origin}){_meant(name, known)}")
    values = {name: _checked(name, known[name], found) for name, found in given.items()}
    _check_language(given.get("search.language"))
    return Loaded(_built(values), {name: found.origin for name, found in given.items()})


def settings(config: Config | None = None) -> Iterator[tuple[str, Any, Field[Any]]]:
    """Every setting: ``section.name``, its value in ``config`` (or the default), and its description."""
    config = config or Config()
    for section in dataclasses.fields(config):
        values = getattr(config, section.name)
        for field in dataclasses.fields(values):
            yield f"{section.name}.{field.name}", getattr(values, field.name), field


def printed(loaded: Loaded) -> str:
    """The configuration as TOML, each value with its meaning, range and origin."""
    lines, section = [], ""
    for name, value, field in settings(loaded.config):
        if name.partition(".")[0] != section:
            section = name.partition(".")[0]
            lines += ["", f"[{section}]"]
        lines.append(f"# {field.metadata['meaning']}; {_allowed(field)}; {loaded.origins.get(name, 'default')}")
        lines.append(f"{field.name} = {_toml(value)}")
    return "\n".join(lines[1:]) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _from_file(file: Path) -> dict[str, Given]:
    import tomllib

    try:
        with file.open("rb") as opened:
            sections = tomllib.load(opened)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the configuration file {file} cannot be read: {error}") from error
    given: dict[str, Given] = {}
    for section, values in sections.items():
        if not isinstance(values, dict):
            raise ConfigError(f"'{section}' in {file} stands outside of a section such as [memory]")
        given |= {f"{section}.{name}": Given(value, f"file {file}") for name, value in values.items()}
    return given


def _from_environment(environment: Mapping[str, str], known: Mapping[str, Any]) -> dict[str, Given]:
    given = {}
    for name in known:
        variable = _ENVIRONMENT + name.replace(".", "_").upper()
        if variable in environment:
            given[name] = Given(environment[variable], f"environment {variable}")
    return given


def _from_flags(flags: Sequence[str]) -> dict[str, Given]:
    given = {}
    for flag in flags:
        name, equals, value = flag.partition("=")
        if not equals:
            raise ConfigError(f"--set {flag} has no value; write --set section.name=value")
        given[name.strip()] = Given(value.strip(), f"flag --set {name.strip()}")
    return given


def _checked(name: str, field: Field[Any], found: Given) -> Any:
    if "low" in field.metadata:
        value = _number(found.value, whole=isinstance(field.default, int))
        allowed = value is not None and field.metadata["low"] <= value <= field.metadata["high"]
    elif isinstance(field.default, bool):
        value = {"true": True, "false": False}.get(str(found.value).lower())
        allowed = value is not None
    else:
        value = found.value
        choices = field.metadata["choices"]
        allowed = isinstance(value, str) and (not choices or value in choices)
    if not allowed:
        raise ConfigError(f"{name} is {found.value!r} ({found.origin}); it must be {_allowed(field)}")
    return value


def _check_language(found: Given | None) -> None:
    if found is None:
        return
    from sidecar.search.languages import canonical_name

    try:
        canonical_name(found.value)
    except InvalidInput as error:
        raise ConfigError(f"search.language is {found.value!r} ({found.origin}); {error.message}") from error


def _number(value: Any, *, whole: bool) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = int(value) if whole and not isinstance(value, float) else float(value)
    except ValueError:
        return None
    if not math.isfinite(number) or (whole and number != int(number)):
        return None
    return int(number) if whole else number


def _allowed(field: Field[Any]) -> str:
    rule = field.metadata
    if "low" in rule:
        kind = "a whole number" if isinstance(field.default, int) else "a number"
        return f"{kind} of {rule['unit']} from {rule['low']} to {rule['high']}"
    if isinstance(field.default, bool):
        return "true or false"
    return "one of " + ", ".join(rule["choices"]) if rule["choices"] else "a text"


def _meant(name: str, known: Mapping[str, Any]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else "; see lorekeeper serve --print-config"


def _built(values: Mapping[str, Any]) -> Config:
    config = Config()
    for section in dataclasses.fields(config):
        own = {name.partition(".")[2]: value for name, value in values.items() if name.startswith(section.name + ".")}
        config = dataclasses.replace(
            config, **{section.name: dataclasses.replace(getattr(config, section.name), **own)}
        )
    return config
