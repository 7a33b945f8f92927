"""How a call is cut into runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.embedding.batching import BatchBounds, batches, tensor_bytes

WIDE = BatchBounds(texts=16, tokens=32_768, tensor_bytes=2**28, dimensions=1024)


@given(st.lists(st.integers(2, 512), max_size=80), st.integers(1, 8), st.integers(1, 900), st.integers(1, 2**22))
def test_every_text_is_in_one_run_and_no_run_of_several_breaks_a_bound(lengths, texts, tokens, most):
    bounds = BatchBounds(texts=texts, tokens=tokens, tensor_bytes=most, dimensions=64)
    runs = batches(lengths, bounds)
    assert sorted(position for run in runs for position in run) == list(range(len(lengths)))
    for run in (run for run in runs if len(run) > 1):
        sizes = [lengths[position] for position in run]
        assert len(run) <= texts
        assert sum(sizes) <= tokens
        assert tensor_bytes(len(run), max(sizes), 64) <= most


@given(st.lists(st.integers(2, 512), min_size=1, max_size=80))
def test_texts_are_taken_shortest_first(lengths):
    taken = [lengths[position] for run in batches(lengths, WIDE) for position in run]
    assert taken == sorted(lengths)


def test_two_short_texts_share_a_run_of_twelve_tokens_and_a_long_one_stands_alone():
    bounds = BatchBounds(texts=2, tokens=12, tensor_bytes=2**28, dimensions=1024)
    assert [len(run) for run in batches([8, 4, 5], bounds)] == [2, 1]


def test_a_batch_over_the_tensor_bound_is_split_instead_of_refused():
    bounds = BatchBounds(texts=16, tokens=10**6, tensor_bytes=2**28, dimensions=1024)
    runs = batches([8_192] * 16, bounds)
    assert len(runs) > 1
    assert all(tensor_bytes(len(run), 8_192, 1024) <= 2**28 for run in runs)


@pytest.mark.parametrize(("tokens", "size"), [(512, 33_751_040), (8_192, 540_016_640)])
def test_the_tensors_of_sixteen_texts_of_bge_m3_are_estimated_from_their_shape(tokens, size):
    assert tensor_bytes(16, tokens, 1024) == size
