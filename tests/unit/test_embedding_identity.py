"""Identities, text hashes and what a usable vector is."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sidecar.embedding.identity import EmbeddingIdentity, text_hash, unit_vectors
from sidecar.errors import InvalidInput, LorekeeperError, Reason

GOOD = {"provider": "p", "model": "m", "version": "1", "dimensions": 3}


def test_an_identity_is_equal_only_if_all_four_parts_are():
    other = {"provider": "q", "model": "n", "version": "2", "dimensions": 4}
    changed = [EmbeddingIdentity(**{**GOOD, part: value}) for part, value in other.items()]
    assert EmbeddingIdentity(**GOOD) == EmbeddingIdentity(**GOOD)
    assert EmbeddingIdentity(**GOOD) not in changed


def test_an_identity_is_written_as_provider_model_version_and_dimensions():
    assert str(EmbeddingIdentity(**GOOD)) == "p/m@1:3"


def test_no_two_identities_are_written_alike():
    tagged = {"m": "1@2", "m@1": "2", "m%401": "2"}
    assert len({str(EmbeddingIdentity("p", model, version, 3)) for model, version in tagged.items()}) == 3


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("provider", " "),
        ("provider", "p" * 257),
        ("model", "m" * 513),
        ("version", "v" * 257),
        ("model", "a\nb"),
        ("version", "\x7f"),
        ("dimensions", 0),
        ("dimensions", 65_537),
    ],
)
def test_a_part_of_an_identity_out_of_bounds_is_refused(part, value):
    with pytest.raises(InvalidInput) as refused:
        EmbeddingIdentity(**{**GOOD, part: value})
    assert refused.value.field == f"identity.{part}"


def test_a_text_hash_is_the_sha_256_of_its_utf_8():
    assert text_hash("猫") == hashlib.sha256("猫".encode()).digest()


@given(arrays(np.float32, (4, 6), elements=st.floats(0.0625, 2.0**60, width=32)))
def test_every_row_becomes_a_unit_vector_in_its_own_direction(raw):
    unit = unit_vectors(raw, 6)
    assert unit.dtype == np.float32
    assert np.allclose(np.linalg.norm(unit.astype(np.float64), axis=1), 1, atol=1e-6)
    assert np.all(np.sum(unit * raw.astype(np.float64), axis=1) > 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_refused(bad):
    with pytest.raises(LorekeeperError) as refused:
        unit_vectors(np.array([[1.0, bad]], np.float32), 2)
    assert refused.value.reason is Reason.INVALID_OUTPUT


@pytest.mark.parametrize("raw", [np.zeros((1, 2), np.float32), np.ones((1, 3), np.float32), np.ones(2, np.float32)])
def test_a_vector_without_length_or_of_another_shape_is_refused(raw):
    with pytest.raises(LorekeeperError) as refused:
        unit_vectors(raw, 2)
    assert refused.value.reason is Reason.INVALID_OUTPUT


def test_a_model_that_declares_unit_vectors_must_make_them():
    assert unit_vectors(np.array([[1.0, 0.0]], np.float32), 2, rescale=False).tolist() == [[1.0, 0.0]]
    with pytest.raises(LorekeeperError):
        unit_vectors(np.array([[2.0, 0.0]], np.float32), 2, rescale=False)
