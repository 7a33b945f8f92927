"""The engine with real models: vectors, cuts, bounds, cancellation, loading and unloading."""

import asyncio
import itertools
from dataclasses import replace

import numpy as np
import pytest
from tiny_models import VOCABULARY, graph, table, write_bge_m3, write_model

from sidecar.embedding.catalogue import Catalogue
from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import EmbeddingKind
from sidecar.embedding.loading import LoadPhase, LoadProgress
from sidecar.embedding.model_host import HostState
from sidecar.embedding.stats import Operation
from sidecar.embedding.texts import TextCut
from sidecar.errors import LorekeeperError, NotFound, Reason
from sidecar.settings import EmbeddingSettings

QUERY, DOCUMENT = EmbeddingKind.QUERY, EmbeddingKind.DOCUMENT


def engine_on(folder, **changes):
    settings = replace(EmbeddingSettings(), model=str(folder), **changes)
    return EmbeddingEngine(settings, Catalogue(folder.parent / "none", settings))


def scene(folder, play, **changes):
    """Plays ``await play(engine)`` on an engine whose model is loaded, and closes it."""

    async def run():
        engine = engine_on(folder, **changes)
        assert await engine.start() is None
        try:
            return await play(engine)
        finally:
            await engine.close()

    return asyncio.run(run())


async def reason(work):
    with pytest.raises(LorekeeperError) as error:
        await work
    return error.value.reason


def figures(engine, operation):
    return next(work for work in engine.stats.figures() if work.operation is operation)


def expected(text, *, pooling="mean", dimensions=8):
    """The tiny graph, written out: own embedding plus the text's mean, pooled, made one long."""
    ids = [2, *(VOCABULARY.index(word) for word in text.split()), 3]
    own = table(dimensions)[ids].astype(np.float64)
    states = own + own.mean(axis=0)
    pooled = states[0] if pooling == "cls" else states.mean(axis=0)
    return pooled / np.linalg.norm(pooled)


@pytest.fixture
def tiny(tmp_path):
    return write_model(tmp_path / "tiny")


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_vector_is_the_pooled_output_of_the_graph_made_one_long(tmp_path, pooling):
    folder = write_model(tmp_path / "m", pooling=pooling)
    answer = scene(folder, lambda engine: engine.embed(QUERY, ["cat sword"]))
    assert answer.vectors.dtype == np.float32
    assert np.allclose(answer.vectors[0], expected("cat sword", pooling=pooling), atol=1e-6)


def test_answers_keep_the_order_of_texts_of_mixed_length(tiny):
    texts = [" ".join(["iron", "rain", "cat", "dog", "song"][: 1 + n * 7 % 5]) for n in range(50)]
    answer = scene(tiny, lambda engine: engine.embed(DOCUMENT, texts), max_batch_size=3)
    assert np.allclose(answer.vectors, [expected(text) for text in texts], atol=1e-6)
    assert answer.tokens == tuple(len(text.split()) + 2 for text in texts)


def test_queries_and_documents_get_the_prefix_of_their_kind(tmp_path):
    folder = write_model(tmp_path / "m", prefixes={"query": "gate ", "document": "market "})

    async def play(engine):
        return [(await engine.embed(kind, ["cat"])).vectors[0] for kind in (QUERY, DOCUMENT)]

    query, document = scene(folder, play)
    assert np.allclose(query, expected("gate cat"), atol=1e-6)
    assert np.allclose(document, expected("market cat"), atol=1e-6)


def test_a_model_that_scales_by_the_batch_gives_each_text_the_vector_that_it_has_alone(tmp_path):
    folder = write_model(tmp_path / "m", weights=graph(8, scaled_by_batch=True))
    texts = ["cat", "dog sword iron", "rain"]

    async def play(engine):
        together = (await engine.embed(DOCUMENT, texts)).vectors
        alone = [(await engine.embed(DOCUMENT, [text])).vectors[0] for text in texts]
        return together, alone, figures(engine, Operation.DOCUMENTS).largest_batch

    together, alone, largest = scene(folder, play)
    assert np.array_equal(together, alone)
    assert largest == 1


def test_bge_m3s_layout_answers_with_1024_dimensions_for_every_script(tmp_path):
    folder = write_bge_m3(tmp_path / "bge")
    texts = ["一只猫守在门口", "The old guard", "Стражник 🎮 é"]
    answer = scene(folder, lambda engine: engine.embed(DOCUMENT, texts), max_tokens=64)
    assert answer.vectors.shape == (3, 1024)
    assert np.allclose(np.linalg.norm(answer.vectors, axis=1), 1, atol=1e-6)


def test_one_query_and_three_documents_run_as_batches_of_one_two_and_one(tiny):
    async def play(engine):
        await engine.embed(QUERY, ["cat"])
        await engine.embed(DOCUMENT, ["cat dog", "cat dog song", "iron sword rain gate market cat"])
        return figures(engine, Operation.QUERY), figures(engine, Operation.DOCUMENTS)

    bounds = {"max_tokens": 8, "max_batch_size": 2, "max_batch_tokens": 12}
    query, documents = scene(tiny, play, **bounds)
    assert (query.batches, query.largest_batch) == (1, 1)
    assert (documents.texts, documents.batches, documents.largest_batch) == (3, 2, 2)
    assert documents.failures == {}


def test_a_text_over_the_models_tokens_is_cut_and_told(tiny):
    answer = scene(tiny, lambda engine: engine.embed(DOCUMENT, ["cat", "dog " * 100]), max_tokens=8)
    assert answer.cuts == (TextCut(index=1, unit="tokens", kept=8, dropped=94),)
    assert np.allclose(answer.vectors[1], expected("dog " * 6), atol=1e-6)


def test_one_word_of_two_megabytes_is_cut_and_told(tiny):
    answer = scene(tiny, lambda engine: engine.embed(DOCUMENT, ["x" * 2_000_000]))
    assert answer.cuts == (TextCut(index=0, unit="code_points", kept=100_000, dropped=1_900_000),)


def test_nan_from_the_model_is_told_and_the_next_text_is_answered(tiny):
    async def play(engine):
        told = await reason(engine.embed(QUERY, ["nan"]))
        return told, (await engine.embed(QUERY, ["cat"])).vectors[0]

    told, vector = scene(tiny, play)
    assert told is Reason.INVALID_OUTPUT
    assert np.allclose(vector, expected("cat"), atol=1e-6)


def test_a_run_over_its_time_is_stopped_and_the_model_is_free_again(tiny):
    async def play(engine):
        told = await reason(engine.embed(DOCUMENT, ["slow"]))
        return told, (await engine.embed(QUERY, ["cat"])).vectors.shape

    assert scene(tiny, play, inference_seconds=0.2) == (Reason.INFERENCE_TIMEOUT, (1, 8))


def test_many_queries_take_no_longer_than_one_call_may(tiny):
    async def play(engine):
        provider = engine.models.ready().provider
        asked, embed_query = [], provider.embed_query

        async def slow(text, lane):
            asked.append(text)
            await asyncio.sleep(0.1)
            return await embed_query(text, lane)

        provider.embed_query = slow
        return await reason(engine.embed(QUERY, ["cat " * count for count in range(1, 30)])), len(asked) < 29

    told = scene(tiny, play, inference_seconds=0.4, queue_seconds=0.1)
    assert told == (Reason.INFERENCE_TIMEOUT, True)


def test_a_callers_own_deadline_stops_the_run(tiny):
    async def play(engine):
        told = await reason(engine.embed(DOCUMENT, ["slow"], within=0.05))
        return told, (await engine.embed(QUERY, ["cat"])).vectors.shape

    assert scene(tiny, play) == (Reason.INFERENCE_TIMEOUT, (1, 8))


def test_cancelling_stops_the_run_through_onnx_runtime_and_frees_the_slot(tiny):
    async def play(engine):
        call = asyncio.create_task(engine.embed(DOCUMENT, ["slow"]))
        await until_running(engine)
        call.cancel()
        await asyncio.wait([call])
        answer = await engine.embed(QUERY, ["cat"])
        return call.cancelled(), answer.vectors.shape, figures(engine, Operation.DOCUMENTS).failures

    assert scene(tiny, play) == (True, (1, 8), {Reason.EMBEDDING_CANCELLED: 1})


def test_a_busy_model_without_a_queue_refuses_the_next_call_and_runs_once(tiny):
    async def play(engine):
        call = asyncio.create_task(engine.embed(DOCUMENT, ["slow"]))
        await until_running(engine)
        told = await reason(engine.embed(DOCUMENT, ["cat"]))
        running = engine.models.ready().running
        call.cancel()
        await asyncio.wait([call])
        return told, running

    assert scene(tiny, play, max_queued=0) == (Reason.QUEUE_FULL, 1)


def test_a_query_waits_for_no_document_neither_for_a_run_nor_for_a_place(tiny):
    async def play(engine):
        call = asyncio.create_task(engine.embed(DOCUMENT, ["slow"]))
        await until_running(engine)
        answer = await engine.embed(QUERY, ["cat"])
        running = engine.models.ready().running
        call.cancel()
        await asyncio.wait([call])
        return answer.vectors.shape, running

    assert scene(tiny, play, max_queued=0) == ((1, 8), 1)


def test_a_query_that_is_known_needs_neither_model_nor_place(tiny):
    async def play(engine):
        first = await engine.embed(QUERY, ["cat " * 20])
        call = asyncio.create_task(engine.embed(QUERY, ["slow"]))
        await until_running(engine)
        again = await engine.embed(QUERY, ["cat " * 20])
        call.cancel()
        await asyncio.wait([call])
        return first, again, engine.queries

    first, again, queries = scene(tiny, play, max_queued=0)
    assert np.array_equal(first.vectors, again.vectors)
    assert (first.cuts, first.tokens) == (again.cuts, again.tokens)
    assert (queries.hits, queries.misses) == (1, 2)


def test_the_query_cache_keeps_no_more_than_its_bound(tiny):
    async def play(engine):
        await engine.embed(QUERY, ["cat", "dog", "song", "rain"])
        return len(engine.queries)

    assert scene(tiny, play, max_cached_queries=2) == 2


def test_an_observer_that_fails_changes_no_answer(tmp_path):
    def fail(_metrics):
        raise RuntimeError("the sink is broken")

    async def run():
        settings = EmbeddingSettings(model=str(write_bge_m3(tmp_path / "bge")), max_tokens=64)
        engine = EmbeddingEngine(settings, Catalogue(tmp_path / "none", settings), observer=fail)
        await engine.start()
        answer = await engine.embed(QUERY, ["cat"])
        await engine.close()
        return answer.vectors.shape

    assert asyncio.run(run()) == (1, 1024)


def test_figures_hold_no_text(tiny):
    async def play(engine):
        await engine.embed(DOCUMENT, ["sword"])
        return engine.stats.figures()

    assert "sword" not in str(scene(tiny, play))


def test_without_a_model_a_call_is_told_so_and_why(tmp_path):
    async def run():
        engine = engine_on(tmp_path / "missing")
        why = await engine.start()
        return why.reason, await reason(engine.embed(QUERY, ["cat"])), engine.state

    assert asyncio.run(run()) == (Reason.MISSING_MODEL_FILE, Reason.NO_MODEL, HostState.FAILED)


def test_an_unknown_model_is_not_found(tiny):
    async def play(engine):
        with pytest.raises(NotFound) as error:
            await anext(engine.load("nobody"))
        return error.value.reason

    assert scene(tiny, play) is Reason.MODEL_NOT_FOUND


def test_states_are_told_from_loading_to_ready_to_none(tiny):
    states = []

    async def run():
        settings = EmbeddingSettings(model=str(tiny))
        engine = EmbeddingEngine(settings, Catalogue(tiny.parent / "none", settings), watch=states.append)
        await engine.start()
        await engine.unload()
        await engine.close()

    asyncio.run(run())
    assert states == [HostState.LOADING, HostState.READY, HostState.NONE]


def test_a_call_while_the_model_loads_is_told_so(tiny, monkeypatch):
    async def run():
        engine, begun, may_load = engine_on(tiny), asyncio.Event(), asyncio.Event()
        load = engine.models._loaded

        async def held(entry, tell):
            begun.set()
            await may_load.wait()
            return await load(entry, tell)

        monkeypatch.setattr(engine.models, "_loaded", held)
        loading = asyncio.create_task(last(engine.load()))
        await begun.wait()
        told = await reason(engine.embed(QUERY, ["cat"])), await reason(anext(engine.load("minilm")))
        may_load.set()
        await loading
        ready = engine.state
        await engine.close()
        return told, ready

    assert asyncio.run(run()) == ((Reason.MODEL_LOADING, Reason.MODEL_LOADING), HostState.READY)


def test_a_second_load_of_the_same_model_follows_the_first(tiny, monkeypatch):
    async def run():
        engine, may_load = engine_on(tiny), asyncio.Event()
        load = engine.models._loaded

        async def held(entry, tell):
            while not may_load.is_set():  # tells something to whoever follows
                tell(LoadProgress(LoadPhase.HASHING, 0, 1, "bytes"))
                await asyncio.sleep(0.001)
            return await load(entry, tell)

        monkeypatch.setattr(engine.models, "_loaded", held)
        first, follower = engine.load(), engine.load()
        await anext(first)
        await anext(follower)
        may_load.set()
        second = asyncio.create_task(last(follower))
        ends = await last(first), await second
        await engine.close()
        return [step.phase for step in ends], figures(engine, Operation.MODEL_LOAD).count

    assert asyncio.run(run()) == ([LoadPhase.READY] * 2, 1)


def test_a_follower_that_stops_listening_stops_nothing(tiny):
    async def run():
        engine = engine_on(tiny)
        first = engine.load()
        await anext(first)
        second = asyncio.create_task(last(engine.load()))
        await asyncio.sleep(0)
        second.cancel()
        end = await last(first)
        await engine.close()
        return end.phase

    assert asyncio.run(run()) is LoadPhase.READY


def test_a_follower_is_told_when_the_load_is_stopped_or_fails(tiny, monkeypatch):
    async def run():
        engine = engine_on(tiny)

        async def held(entry, tell):
            for done in itertools.count():  # never ends, and always has something to tell
                tell(LoadProgress(LoadPhase.WARMING, done, done + 1, "runs"))
                await asyncio.sleep(0)

        monkeypatch.setattr(engine.models, "_loaded", held)
        first = engine.load()
        await anext(first)
        second = engine.load()
        await anext(second)
        await first.aclose()
        told = await reason(last(second))
        await engine.close()
        return told, engine.state

    assert asyncio.run(run()) == (Reason.EMBEDDING_CANCELLED, HostState.NONE)


def test_a_model_answers_until_the_one_that_replaces_it_is_ready(tiny, tmp_path):
    models = tmp_path / "models"
    write_model(models / "second", dimensions=16)
    settings = EmbeddingSettings(model=str(tiny))

    async def run():
        engine = EmbeddingEngine(settings, Catalogue(models, settings))
        await engine.start()
        shapes = []
        async for _step in engine.load("second"):
            shapes.append((await engine.embed(DOCUMENT, ["cat"])).vectors.shape)
        await engine.close()
        return shapes

    shapes = asyncio.run(run())
    assert shapes[0] == (1, 8)
    assert shapes[-1] == (1, 16)


def test_a_model_that_cannot_be_loaded_leaves_the_old_one_in_place(tiny, tmp_path):
    models = tmp_path / "models"
    (write_model(models / "broken") / "model.onnx").write_bytes(b"garbage")
    settings = EmbeddingSettings(model=str(tiny))

    async def run():
        engine = EmbeddingEngine(settings, Catalogue(models, settings))
        await engine.start()
        with pytest.raises(LorekeeperError):
            async for _step in engine.load("broken"):
                pass
        answer = await engine.embed(QUERY, ["cat"])
        failures = {name: error.reason for name, error in engine.models.failures.items()}
        await engine.close()
        return answer.vectors.shape, failures

    assert asyncio.run(run()) == ((1, 8), {"broken": Reason.MODEL_INTEGRITY})


def test_unloading_turns_away_what_waits_and_lets_what_runs_end(tiny):
    async def play(engine):
        running = asyncio.create_task(engine.embed(DOCUMENT, ["slow"]))
        await until_running(engine)
        queued = asyncio.create_task(engine.embed(DOCUMENT, ["cat"]))
        await asyncio.sleep(0)
        name = await engine.unload()
        return name, await reason(queued), await reason(running), engine.state

    told = scene(tiny, play, inference_seconds=0.3)
    assert told[:2] == ("tiny", Reason.MODEL_UNLOADED)
    assert told[2] in (Reason.INFERENCE_TIMEOUT, Reason.EMBEDDING_CANCELLED)
    assert told[3] is HostState.NONE


def test_closing_twice_while_a_run_is_under_way_stops_it(tiny):
    async def run():
        engine = engine_on(tiny)
        await engine.start()
        call = asyncio.create_task(engine.embed(DOCUMENT, ["slow"]))
        await until_running(engine)
        await engine.close()
        await engine.close()
        return await reason(call)

    assert asyncio.run(run()) is Reason.EMBEDDING_CANCELLED


async def last(steps):
    """The last message of a load."""
    return [step async for step in steps][-1]


async def until_running(engine):
    """Gives way until a run is under way."""
    while engine.models.ready().running == 0:  # noqa: ASYNC110  # nothing tells this moment
        await asyncio.sleep(0)
