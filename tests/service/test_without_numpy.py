"""A daemon without NumPy searches by words like any other, few records and many."""

import pytest
from client import failure
from records_client import Records, m

from sidecar.gen.lorekeeper.v1 import embedding_pb2, embedding_pb2_grpc, search_pb2
from sidecar.search.ways import MOST_PLAIN

MANY = 2 * MOST_PLAIN
RANKS = search_pb2.FusionOptions(mode=search_pb2.FUSION_MODE_RRF)


@pytest.fixture(scope="module")
def without_numpy(tmp_path_factory):
    """What a Python does first that shall find no NumPy."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['numpy'] = None\n", encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


def told(hits):
    return [
        (hit.record.record_id, hit.score, round(hit.fused_score, 8), [said.rank for said in hit.channels])
        for hit in hits
    ]


def test_it_finds_what_a_daemon_with_numpy_finds(start_daemon, without_numpy, actor, tmp_path):
    found = []
    for name, environment in (("with", {}), ("without", without_numpy)):
        daemon = start_daemon(folder=tmp_path / name, environment=environment)
        records = Records(daemon.client, actor)
        records.add(*(m(f"m{n}", f"wolf {n % 7} gate {n % 5}", tick=n % 90, tags=[f"t{n % 3}"]) for n in range(MANY)))
        talk = records.other("talk")
        records.add(*(m(f"m{n}", f"wolf {n % 7}", conversation_id="c", ordinal=n) for n in range(MANY)), actor=talk)
        few = records.other("few")
        records.add(m("a", "the wolf"), m("b", "the gate"), actor=few)
        answers = [
            records.search("wolves 3 gate", limit=20),
            records.search("wolf 3", limit=20, fusion=RANKS, explain=True),
            records.search("", limit=20),
            records.search("wolf 3", actor=talk, limit=20),
            records.search("gates", actor=few),
        ]
        found.append([told(answer.hits) for answer in answers])
        records.rebuild(terms=True)
        assert records.status().terms_ready == MANY + MANY + 2
    assert found[0] == found[1]
    assert all(found[0])


@pytest.mark.embeds
def test_a_model_says_which_package_it_lacks(start_daemon, without_numpy):
    daemon = start_daemon(environment=without_numpy)
    stub = embedding_pb2_grpc.EmbeddingServiceStub(daemon.client.channel)
    refused = failure(lambda: list(stub.LoadModel(embedding_pb2.LoadModelRequest(name="minilm"))))
    assert refused.kind == ("FAILED_PRECONDITION", "UNSUPPORTED_MODEL")
    assert "numpy" in refused.message
