"""Which model made a vector, which text it stands for, and what a usable vector is. Pure; never touches a model.

Vectors of two identities are never compared: whatever changes a vector (weights, tokenizer, pooling, prefixes, the
number of tokens read) must change the identity.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from sidecar.errors import InvalidInput, LorekeeperError, Reason

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatVectors = NDArray[np.float32]

PROVIDER_CHARS = 256
MODEL_CHARS = 512
VERSION_CHARS = 256
MAX_DIMENSIONS = 65_536
_UNIT_TOLERANCE = 1e-3


class EmbeddingKind(Enum):
    """What a text is: asymmetric models put another prefix before a query than before a document."""

    QUERY = "query"
    DOCUMENT = "document"


@dataclass(frozen=True)
class EmbeddingIdentity:
    """Provider, model, version and dimensions; equal only if all four are."""

    provider: str
    model: str
    version: str
    dimensions: int

    def __post_init__(self) -> None:
        _check_name("provider", self.provider, PROVIDER_CHARS)
        _check_name("model", self.model, MODEL_CHARS)
        _check_name("version", self.version, VERSION_CHARS)
        if not 1 <= self.dimensions <= MAX_DIMENSIONS:
            raise _invalid("dimensions", f"must be 1 to {MAX_DIMENSIONS}")

    def __str__(self) -> str:
        """Vectors are kept under it: no two identities have the same."""
        model = self.model.replace("%", "%25").replace("@", "%40")
        return f"{self.provider}/{model}@{self.version}:{self.dimensions}"


def text_hash(text: str) -> bytes:
    """SHA-256 of the text in UTF-8 (32 bytes): the key of its vector beside the identity."""
    return hashlib.sha256(text.encode("utf-8")).digest()


def unit_vectors(raw: NDArray[np.floating], dimensions: int, *, rescale: bool = True) -> FloatVectors:
    """Rows of length one as float32, checked: the right shape, all finite, none zero.

    Norms are summed in double. With ``rescale=False`` the rows must already have length one.
    Raises INVALID_OUTPUT.
    """
    import numpy as np

    if raw.ndim != 2 or raw.shape[1] != dimensions:
        raise invalid_output(f"vectors of shape {raw.shape}, not (texts, {dimensions})")
    wide = raw.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    if not np.all(np.isfinite(norms)) or not np.all(norms > 0):
        raise invalid_output("a vector that is not finite or has no length")
    if rescale:
        wide /= norms[:, None]
    elif np.any(np.abs(norms - 1) > _UNIT_TOLERANCE):
        raise invalid_output("a vector whose length is not one, though it declares normalise = false")
    return wide.astype(np.float32)


def invalid_output(what: str) -> LorekeeperError:
    return LorekeeperError(f"the embedding model returned {what}; load another model", reason=Reason.INVALID_OUTPUT)


def has_controls(text: str) -> bool:
    """Whether there are control characters or half surrogate pairs in it."""
    return any(unicodedata.category(char) in ("Cc", "Cs") for char in text)


def _check_name(name: str, value: str, longest: int) -> None:
    if not value.strip() or len(value) > longest:
        raise _invalid(name, f"must be 1 to {longest} characters and not blank")
    if has_controls(value):
        raise _invalid(name, "must not contain control characters")


def _invalid(name: str, rule: str) -> InvalidInput:
    return InvalidInput(
        f"the embedding identity's {name} {rule}", reason=Reason.EMBEDDING_CONFIGURATION, field=f"identity.{name}"
    )
