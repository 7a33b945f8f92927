"""EmbeddingService of a real daemon over a real socket."""

import threading

import grpc
import pytest
from client import Client, failure
from daemon_process import DaemonProcess
from embedding_server import answer, embedding_server
from grpc_health.v1 import health_pb2
from tiny_models import write_bge_m3, write_model

from sidecar.gen.lorekeeper.v1 import embedding_pb2 as pb
from sidecar.gen.lorekeeper.v1 import embedding_pb2_grpc

pytestmark = pytest.mark.embeds
SERVICE = "lorekeeper.v1.EmbeddingService"
NAME = "Željko 田中　テスト émoji🎮"
QUERY, DOCUMENT = pb.EMBED_KIND_QUERY, pb.EMBED_KIND_DOCUMENT


def stub(client: Client):
    return embedding_pb2_grpc.EmbeddingServiceStub(client.channel)


def until_serving(client, serving=True):
    """Watches the health of the service until it is so."""
    wanted = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
    watch = client.health.Watch(health_pb2.HealthCheckRequest(service=SERVICE), timeout=20)
    assert any(state.status == wanted for state in watch)
    watch.cancel()


def embed(client, *texts, kind=DOCUMENT, **more):
    return stub(client).Embed(pb.EmbedRequest(kind=kind, texts=texts, **more))


def embed_failure(client, *texts, kind=DOCUMENT, **more):
    return failure(lambda: embed(client, *texts, kind=kind, **more))


def running(client):
    """A call whose run lasts until it is stopped, once it is under way."""
    call = stub(client).Embed.future(pb.EmbedRequest(kind=DOCUMENT, texts=["slow"]))
    while not figures(client).running:
        assert not call.done()
    return call


def figures(client):
    return stub(client).GetEmbeddingStats(pb.GetEmbeddingStatsRequest())


@pytest.fixture(scope="module")
def tiny_daemon(tmp_path_factory):
    """A daemon whose data folder holds one tiny model, loaded, and BGE-M3's layout, not loaded."""
    folder = tmp_path_factory.mktemp("tiny")
    write_model(folder / "data" / "models" / NAME, prefixes={"query": "gate "})
    write_bge_m3(folder / "data" / "models" / "bge-m3")
    settings = {"LOREKEEPER_EMBEDDING_MODEL": NAME, "LOREKEEPER_EMBEDDING_MAX_TEXTS": "4096"}
    daemon = DaemonProcess(folder / "data", environment=settings, stderr=folder / "stderr.txt").start()
    until_serving(daemon.client)
    yield daemon
    daemon.close()


@pytest.fixture
def client(tiny_daemon):
    return tiny_daemon.client


@pytest.fixture
def own_daemon(start_daemon, tmp_path):
    """Starts a daemon of this test alone on one tiny model, loaded; takes settings of ``embedding``."""
    write_model(tmp_path / "data" / "models" / "tiny")

    def start(**settings):
        environment = {f"LOREKEEPER_EMBEDDING_{key.upper()}": str(value) for key, value in settings.items()}
        daemon = start_daemon(environment={"LOREKEEPER_EMBEDDING_MODEL": "tiny", **environment})
        until_serving(daemon.client)
        return daemon

    return start


def test_texts_become_unit_vectors_in_order_with_their_identity_and_tokens(client):
    response = embed(client, "cat", "cat dog iron")
    assert [len(embedding.values) for embedding in response.embeddings] == [8, 8]
    assert [embedding.tokens for embedding in response.embeddings] == [3, 5]
    assert all(abs(sum(value * value for value in one.values) - 1) < 1e-5 for one in response.embeddings)
    assert (response.identity.provider_id, response.identity.dimensions) == ("onnx-in-process", 8)


def test_a_query_and_a_document_of_one_text_differ_where_the_model_has_a_prefix(client):
    assert embed(client, "cat", kind=QUERY).embeddings[0] != embed(client, "cat").embeddings[0]


def test_a_long_text_is_cut_and_told(client):
    response = embed(client, "cat", "dog " * 40)
    assert [embedding.truncated for embedding in response.embeddings] == [False, True]
    (cut,) = response.cuts
    assert (cut.what, cut.unit, cut.kept, cut.dropped) == ("embedding_input", "tokens", 16, 26)
    assert "texts[1]" in cut.detail
    assert "dog" not in cut.detail


def test_a_word_of_two_megabytes_is_cut_and_told(client):
    assert embed(client, "x" * 2_000_000).cuts[0].dropped == 1_900_000


@pytest.mark.parametrize(
    ("texts", "reason", "field"),
    [
        ([], "FIELD_REQUIRED", "texts"),
        (["cat", ""], "FIELD_REQUIRED", "texts[1]"),
        (["   "], "FIELD_REQUIRED", "texts[0]"),
        (["a\0b"], "FIELD_INVALID", "texts[0]"),
        (["cat"] * 4_097, "TOO_MANY_ITEMS", "texts"),
    ],
    ids=["none", "empty", "blank", "NUL", "too many"],
)
def test_bad_texts_are_refused_by_their_field_and_the_daemon_goes_on(client, texts, reason, field):
    failed = embed_failure(client, *texts)
    assert failed.kind == ("INVALID_ARGUMENT", reason)
    assert failed.fields == (field,)
    assert embed(client, "cat").embeddings


def test_a_kind_must_be_told(client):
    assert embed_failure(client, "cat", kind=pb.EMBED_KIND_UNSPECIFIED).kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")


def test_a_call_that_names_another_model_never_gets_this_ones_vectors(client):
    assert embed_failure(client, "cat", model="bge-m3").kind == ("FAILED_PRECONDITION", "NO_MODEL")
    assert embed(client, "cat", model=NAME).embeddings


def test_nan_from_the_model_is_told_and_the_daemon_goes_on(client):
    assert embed_failure(client, "nan").kind == ("INTERNAL", "INVALID_OUTPUT")
    assert embed(client, "cat").embeddings


def test_a_client_that_goes_away_stops_its_run_and_frees_the_model(client):
    running(client).cancel()
    assert embed(client, "cat").embeddings


def test_models_are_listed_with_what_is_selected_and_why(client):
    models = {model.name: model for model in stub(client).ListModels(pb.ListModelsRequest()).models}
    assert sorted(models) == sorted([NAME, "bge-m3", "minilm"])
    mine, bge = models[NAME], models["bge-m3"]
    assert (mine.state, mine.selected, mine.pooling, mine.query_prefix) == (pb.MODEL_STATE_READY, True, "mean", "gate ")
    assert mine.selection_reason == "embedding.model names it"
    assert len(mine.files[0].sha256) == 64
    assert (bge.state, bge.selected, bge.pooling, bge.max_tokens) == (pb.MODEL_STATE_UNLOADED, False, "cls", 512)
    assert len(bge.files) == 4
    assert models["minilm"].source == pb.MODEL_SOURCE_PACKAGE


def test_models_come_in_pages(client):
    first = stub(client).ListModels(pb.ListModelsRequest(page_size=2))
    rest = stub(client).ListModels(pb.ListModelsRequest(page_size=2, page_token=first.next_page_token))
    names = [model.name for model in (*first.models, *rest.models)]
    assert names == sorted([NAME, "bge-m3", "minilm"])
    assert rest.next_page_token == ""


def test_figures_count_calls_failures_texts_tokens_and_cuts(client):
    def documents():
        return next(one for one in figures(client).work if one.operation == pb.EMBEDDING_OPERATION_DOCUMENTS)

    before = documents()
    embed(client, "cat", "dog " * 40)
    embed_failure(client, "nan")
    after = documents()
    assert after.count - before.count == 2
    assert (after.texts - before.texts, after.tokens - before.tokens) == (2, 19)
    assert after.truncated_texts - before.truncated_texts == 1
    failures = {entry.failure: entry.count for entry in after.failures}
    assert failures[pb.EMBEDDING_FAILURE_INVALID_OUTPUT] >= 1
    assert after.total.max_ms >= after.total.p50_ms > 0
    assert (figures(client).identity.dimensions, figures(client).queue_capacity) == (8, 16)


def test_loading_tells_each_phase_and_ends_with_the_identity(own_daemon, tmp_path):
    client = own_daemon().client
    write_bge_m3(tmp_path / "data" / "models" / "bge-m3")
    steps = list(stub(client).LoadModel(pb.LoadModelRequest(name="bge-m3")))
    phases = list(dict.fromkeys(step.phase for step in steps))
    assert phases == [pb.LOAD_PHASE_HASHING, pb.LOAD_PHASE_LOADING, pb.LOAD_PHASE_WARMING, pb.LOAD_PHASE_READY]
    assert steps[-1].identity.dimensions == 1024
    assert len(embed(client, "一只猫守在门口").embeddings[0].values) == 1024


def test_unloading_frees_the_model_and_health_follows(own_daemon):
    client = own_daemon().client
    unloaded = stub(client).UnloadModel(pb.UnloadModelRequest())
    assert (unloaded.unloaded, unloaded.name) == (True, "tiny")
    until_serving(client, serving=False)
    assert client.serving()
    assert embed_failure(client, "cat").kind == ("FAILED_PRECONDITION", "NO_MODEL")
    assert not stub(client).UnloadModel(pb.UnloadModelRequest()).unloaded
    list(stub(client).LoadModel(pb.LoadModelRequest()))
    until_serving(client)
    assert embed(client, "cat").embeddings


def test_only_the_named_model_is_unloaded(own_daemon):
    client = own_daemon().client
    assert not stub(client).UnloadModel(pb.UnloadModelRequest(name="other")).unloaded
    assert embed(client, "cat").embeddings


def test_a_full_queue_refuses_and_names_its_limit_and_the_daemon_goes_on(own_daemon):
    client = own_daemon(max_queued=0).client
    call = running(client)
    failed = embed_failure(client, "cat")
    assert failed.kind == ("RESOURCE_EXHAUSTED", "QUEUE_FULL")
    assert failed.metadata["limit"] == "embedding.max_queued"
    call.cancel()


def test_a_wait_over_its_time_is_told_and_nothing_of_the_call_runs(own_daemon):
    client = own_daemon(queue_seconds=0.01).client
    call = running(client)
    assert embed_failure(client, "cat").kind == ("DEADLINE_EXCEEDED", "QUEUE_TIMEOUT")
    call.cancel()


def test_a_run_over_its_time_is_told_and_the_daemon_goes_on(own_daemon):
    client = own_daemon(inference_seconds=0.2).client
    assert embed_failure(client, "slow").kind == ("DEADLINE_EXCEEDED", "INFERENCE_TIMEOUT")
    assert embed(client, "cat").embeddings


def test_documents_are_written_and_read_while_a_model_runs(own_daemon, actor):
    client = own_daemon().client
    call = running(client)
    client.write(actor, "the cat guards the gate")
    assert client.text(actor) == "the cat guards the gate"
    assert not call.done()
    call.cancel()


def test_a_daemon_that_is_told_to_end_stops_a_run_under_way(own_daemon):
    daemon = own_daemon()
    call = running(daemon.client)
    assert daemon.stop() == 0
    assert call.exception() is not None


@pytest.mark.parametrize(
    ("damage", "reason", "kind"),
    [
        (lambda folder: (folder / "model.onnx").unlink(), "MISSING_MODEL_FILE", "MISSING_MODEL_FILE"),
        (lambda folder: (folder / "model.onnx").write_bytes(b"cut"), "MODEL_INTEGRITY", "MODEL_INTEGRITY"),
        (lambda folder: write_model(folder, pooling="best"), "EMBEDDING_CONFIGURATION", "INVALID_CONFIGURATION"),
        (lambda folder: (folder / "lorekeeper-model.toml").unlink(), "UNSUPPORTED_MODEL", "UNSUPPORTED_MODEL"),
    ],
    ids=["missing", "truncated", "misdeclared", "other dimensions"],
)
def test_a_model_that_cannot_be_loaded_is_told_by_its_kind_and_the_daemon_serves(
    start_daemon, tmp_path, damage, reason, kind
):
    damage(write_model(tmp_path / "data" / "models" / "tiny"))
    client = start_daemon().client
    failed = failure(lambda: list(stub(client).LoadModel(pb.LoadModelRequest(name="tiny"))))
    assert failed.kind == ("FAILED_PRECONDITION", reason)
    (model,) = (one for one in stub(client).ListModels(pb.ListModelsRequest()).models if one.name == "tiny")
    assert model.state == pb.MODEL_STATE_FAILED
    assert pb.EmbeddingFailure.Name(model.failure) == f"EMBEDDING_FAILURE_{kind}"
    assert client.serving()
    assert not client.serving(SERVICE)


def test_an_unknown_model_is_not_found(client):
    failed = failure(lambda: list(stub(client).LoadModel(pb.LoadModelRequest(name="nobody"))))
    assert failed.kind == ("NOT_FOUND", "MODEL_NOT_FOUND")


def test_a_daemon_without_a_model_says_so_and_goes_on(daemon, actor):
    assert embed_failure(daemon.client, "cat").kind == ("FAILED_PRECONDITION", "NO_MODEL")
    daemon.client.write(actor, "cat")
    assert not daemon.client.serving(SERVICE)
    assert daemon.client.serving()


def test_a_daemon_on_an_empty_folder_has_the_built_in_model_by_itself(start_daemon):
    client = start_daemon(environment={"LOREKEEPER_EMBEDDING_MODEL": "auto"}).client
    until_serving(client)
    response = embed(client, "Where is the cat?", kind=QUERY)
    assert response.identity.model_id == "sentence-transformers/all-MiniLM-L6-v2"
    assert len(response.embeddings[0].values) == 384


def test_a_call_before_the_selected_model_is_there_is_told_that_it_loads(start_daemon, tmp_path):
    write_model(tmp_path / "data" / "models" / NAME)
    client = start_daemon(environment={"LOREKEEPER_EMBEDDING_MODEL": NAME}).client
    told = set()
    while not client.serving(SERVICE):
        try:
            embed(client, "cat")
        except grpc.RpcError as error:
            told.add(error.details())
    assert told == {"the model is being loaded; try again in a moment"}


def test_unloading_gives_the_memory_of_the_model_back(start_daemon):
    service = stub(start_daemon().client)

    def cycle():
        loaded = list(service.LoadModel(pb.LoadModelRequest(name="minilm")))[-1].resident_bytes
        return loaded, service.UnloadModel(pb.UnloadModelRequest()).resident_bytes

    (loaded, unloaded), (_, again) = cycle(), cycle()
    assert loaded - unloaded > 80_000_000
    assert abs(again - unloaded) < 20_000_000


def test_a_server_that_fails_is_told_and_the_daemon_goes_on(start_daemon):
    with embedding_server() as server:
        environment = {
            "LOREKEEPER_EMBEDDING_MODEL": "openai",
            "LOREKEEPER_EMBEDDING_OPENAI_URL": server.address,
            "LOREKEEPER_EMBEDDING_OPENAI_MODEL": "nomic",
        }
        client = start_daemon(environment=environment).client
        until_serving(client)
        server.replies.append(lambda asked, handler: answer(handler, b"oops", status=500))
        assert embed_failure(client, "cat").kind == ("UNAVAILABLE", "INFERENCE_FAILED")
        assert embed(client, "cat").identity.provider_id == "openai-compatible"


def test_no_text_reaches_the_log(own_daemon):
    daemon = own_daemon()
    embed(daemon.client, "xyzzyplugh cat")
    embed_failure(daemon.client, "xyzzyplugh nan")
    embed_failure(daemon.client, "xyzzyplugh\0")
    daemon.stop()
    assert "xyzzy" not in daemon.stderr


def test_many_clients_are_all_answered(client):
    failures = []

    def work():
        try:
            embed(client, "cat", kind=QUERY)
            embed(client, "dog iron")
        except grpc.RpcError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
