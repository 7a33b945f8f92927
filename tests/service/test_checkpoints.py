"""A save as it was: checkpoints, restoring them, and what a client is told of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from chat_client import Chat
from client import failure

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, save_pb2


@pytest.fixture
def save(request):
    """A save of this test alone."""
    return f"save of {request.node.name}"


@pytest.fixture
def mira(save):
    return common_pb2.Actor(save_id=save, actor_id="mira", role_id="Merchant")


def checkpoint(client, save, **more):
    return client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=save, **more))


def restore(client, save, checkpoint_id, **more):
    request = save_pb2.RestoreCheckpointRequest(save_id=save, checkpoint_id=checkpoint_id, **more)
    return client.saves.RestoreCheckpoint(request)


def listed(client, save, **more):
    return client.saves.ListCheckpoints(save_pb2.ListCheckpointsRequest(save_id=save, **more)).checkpoints


def test_a_restore_brings_back_document_and_versions(client, save, mira):
    client.write(mira, "The player is a stranger.")
    kept = checkpoint(client, save).checkpoint
    client.write(mira, "The player burned the mill.")
    restore(client, save, kept.checkpoint_id)
    assert client.text(mira) == "The player is a stranger."
    assert [version.version for version in client.versions(mira).versions] == [1]


def test_an_actor_that_came_later_is_unknown_after_a_restore(client, save, mira):
    later = common_pb2.Actor(save_id=save, actor_id="later")
    client.write(mira, "early")
    kept = checkpoint(client, save).checkpoint
    client.write(later, "late")
    restore(client, save, kept.checkpoint_id)
    assert client.read(later).status == common_pb2.LOAD_STATUS_NOT_FOUND
    actors = client.memory.ListActors(memory_pb2.ListActorsRequest(save_id=save)).actors
    assert [info.actor.actor_id for info in actors] == ["mira"]


def test_an_actor_that_was_erased_comes_back_only_where_no_checkpoint_was_rewritten(client, save, mira):
    client.write(mira, "a secret")
    kept = checkpoint(client, save).checkpoint
    erased = client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=mira)).erased
    assert erased.checkpoints_rewritten == 1
    restore(client, save, kept.checkpoint_id)
    assert client.read(mira).status == common_pb2.LOAD_STATUS_NOT_FOUND
    assert [one.rewritten for one in listed(client, save) if one.checkpoint_id == kept.checkpoint_id] == [True]


def test_a_restore_raises_the_epoch_and_never_lowers_the_revision(client, save, mira):
    client.write(mira, "one")
    kept = checkpoint(client, save)
    before = client.write(mira, "two").save
    after = restore(client, save, kept.checkpoint.checkpoint_id).save
    assert after.epoch == before.epoch + 1
    assert after.revision > before.revision
    assert client.read(mira).save == after


def test_what_a_restore_replaces_is_kept_and_can_be_restored(client, save, mira):
    client.write(mira, "past")
    kept = checkpoint(client, save).checkpoint
    client.write(mira, "future")
    safety = restore(client, save, kept.checkpoint_id).safety
    assert safety.kind == save_pb2.CHECKPOINT_KIND_SAFETY
    restore(client, save, safety.checkpoint_id)
    assert client.text(mira) == "future"


def test_a_checkpoint_can_be_restored_again_after_the_save_went_on(client, save, mira):
    client.write(mira, "one")
    kept = checkpoint(client, save).checkpoint
    for text in ("two", "three"):
        client.append(mira, text)
        restore(client, save, kept.checkpoint_id)
        assert client.text(mira) == "one"


def test_a_checkpoint_of_a_save_that_holds_nothing_yet_brings_the_beginning_back(client, save, mira):
    kept = checkpoint(client, save).checkpoint
    client.write(mira, "something")
    restore(client, save, kept.checkpoint_id)
    assert client.read(mira).status == common_pb2.LOAD_STATUS_NOT_FOUND


def test_a_checkpoint_tells_what_it_was_made_with(client, save, mira):
    client.write(mira, "one")
    moment = common_pb2.Moment(timeline_id="world", tick=-7, calendar_json='{"day": 3}')
    made = checkpoint(client, save, name="  before the duel ☠ ", moment=moment, metadata={"chapter": "三"}).checkpoint
    (found,) = listed(client, save)
    assert found == made
    assert (found.name, found.moment, dict(found.metadata)) == ("before the duel ☠", moment, {"chapter": "三"})
    assert (found.kind, found.save_id, found.actors) == (save_pb2.CHECKPOINT_KIND_MANUAL, save, 1)
    assert found.bytes > 0
    assert found.method == save_pb2.COPY_METHOD_LINKED


def test_checkpoints_are_listed_newest_first_by_pages_and_by_kind(client, save, mira):
    made = [checkpoint(client, save, name=str(number)).checkpoint.checkpoint_id for number in range(5)]
    restore(client, save, made[0])
    manual = save_pb2.CHECKPOINT_KIND_MANUAL
    request = save_pb2.ListCheckpointsRequest(save_id=save, page_size=2, kind=manual)
    found = []
    while True:
        page = client.saves.ListCheckpoints(request)
        found += [one.checkpoint_id for one in page.checkpoints]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert found == made[::-1]
    assert len(listed(client, save)) == 6


def test_a_deleted_checkpoint_is_gone_and_the_save_is_not(client, save, mira):
    client.write(mira, "one")
    kept = checkpoint(client, save).checkpoint
    request = save_pb2.DeleteCheckpointRequest(save_id=save, checkpoint_id=kept.checkpoint_id)
    assert client.saves.DeleteCheckpoint(request).existed
    assert not client.saves.DeleteCheckpoint(request).existed
    assert client.text(mira) == "one"
    assert failure(lambda: restore(client, save, kept.checkpoint_id)).kind == ("NOT_FOUND", "CHECKPOINT_NOT_FOUND")


@pytest.mark.parametrize("checkpoint_id", ["c-1", "../../etc", "c-00000000000000000000-00000000", "é"])
def test_a_checkpoint_that_does_not_exist_is_not_found(client, save, checkpoint_id):
    assert failure(lambda: restore(client, save, checkpoint_id)).kind == ("NOT_FOUND", "CHECKPOINT_NOT_FOUND")


def test_a_checkpoint_is_required(client, save):
    assert failure(lambda: restore(client, save, "")).kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")


def test_the_checkpoint_of_another_save_is_refused(client, save, mira):
    kept = checkpoint(client, save + " other").checkpoint
    client.write(mira, "mine")
    failed = failure(lambda: restore(client, save, kept.checkpoint_id))
    assert failed.kind == ("FAILED_PRECONDITION", "CHECKPOINT_OF_OTHER_SAVE")
    assert client.text(mira) == "mine"


def test_a_restore_from_an_epoch_that_is_over_is_refused(client, save, mira):
    client.write(mira, "one")
    kept = checkpoint(client, save).checkpoint
    epoch = restore(client, save, kept.checkpoint_id).save.epoch
    failed = failure(lambda: restore(client, save, kept.checkpoint_id, expected_epoch=epoch - 1))
    assert failed.kind == ("ABORTED", "EPOCH_MISMATCH")
    assert failed.metadata["current_epoch"] == str(epoch)
    assert restore(client, save, kept.checkpoint_id, expected_epoch=epoch).save.epoch == epoch + 1


def test_a_repeated_checkpoint_with_the_same_key_is_made_once(client, save, mira):
    first = checkpoint(client, save, idempotency_key="k").checkpoint
    assert checkpoint(client, save, idempotency_key="k").checkpoint == first
    failed = failure(lambda: checkpoint(client, save, name="other", idempotency_key="k"))
    assert failed.kind == ("ALREADY_EXISTS", "IDEMPOTENCY_KEY_REUSED")
    assert len(listed(client, save)) == 1


def test_a_repeated_restore_with_the_same_key_happens_once(client, save, mira):
    client.write(mira, "one")
    kept = checkpoint(client, save).checkpoint
    first = restore(client, save, kept.checkpoint_id, idempotency_key="k")
    client.write(mira, "after the restore")
    again = restore(client, save, kept.checkpoint_id, idempotency_key="k")
    assert again.save.epoch == first.save.epoch
    assert again.safety == first.safety
    assert client.text(mira) == "after the restore"


def test_a_repeated_restore_happens_once_also_where_its_checkpoint_went_with_it(start_daemon, save, mira):
    """The oldest safety checkpoint is no longer kept once what it replaces is one."""
    client = start_daemon("--set", "saves.kept_safety_checkpoints=1").client
    client.write(mira, "one")
    oldest = restore(client, save, checkpoint(client, save).checkpoint.checkpoint_id).safety.checkpoint_id
    first = restore(client, save, oldest, idempotency_key="k")
    client.write(mira, "went on")
    again = restore(client, save, oldest, idempotency_key="k")
    assert (again.safety, again.save.epoch) == (first.safety, first.save.epoch)
    assert client.text(mira) == "went on"


def test_a_repeat_is_known_after_a_kill(daemon, save, mira):
    kept = checkpoint(daemon.client, save, idempotency_key="k").checkpoint
    first = restore(daemon.client, save, kept.checkpoint_id, idempotency_key="r")
    daemon.kill()
    daemon.start()
    assert checkpoint(daemon.client, save, idempotency_key="k").checkpoint == kept
    assert restore(daemon.client, save, kept.checkpoint_id, idempotency_key="r").save.epoch == first.save.epoch


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"name": "x" * 513}, "FIELD_TOO_LONG"),
        ({"metadata": {"k" * 257: ""}}, "FIELD_TOO_LONG"),
        ({"metadata": {"k": "v" * 4_097}}, "FIELD_TOO_LONG"),
        ({"metadata": {str(number): "" for number in range(65)}}, "TOO_MANY_ITEMS"),
        ({"moment": common_pb2.Moment(tick=3)}, "FIELD_REQUIRED"),
        ({"moment": common_pb2.Moment(timeline_id="w", calendar_json="{")}, "FIELD_INVALID"),
        ({"idempotency_key": "k" * 513}, "FIELD_TOO_LONG"),
    ],
)
def test_bad_input_makes_no_checkpoint(client, save, more, reason):
    assert failure(lambda: checkpoint(client, save, **more)).kind == ("INVALID_ARGUMENT", reason)
    assert not listed(client, save)


def test_a_save_has_no_more_checkpoints_than_the_limit_allows(start_daemon, save):
    client = start_daemon("--set", "saves.max_checkpoints=2").client
    for _ in range(2):
        checkpoint(client, save)
    failed = failure(lambda: checkpoint(client, save))
    assert failed.kind == ("RESOURCE_EXHAUSTED", "TOO_MANY_CHECKPOINTS")
    assert failed.metadata["value"] == "2"


def test_the_newest_safety_checkpoints_are_kept(start_daemon, save):
    client = start_daemon("--set", "saves.kept_safety_checkpoints=2").client
    kept = checkpoint(client, save).checkpoint
    made = [restore(client, save, kept.checkpoint_id).safety.checkpoint_id for _ in range(4)]
    left = listed(client, save, kind=save_pb2.CHECKPOINT_KIND_SAFETY)
    assert [one.checkpoint_id for one in left] == made[:1:-1]


def test_a_damaged_checkpoint_is_refused_and_the_save_is_as_it_was(daemon, save, mira):
    client = daemon.client
    client.write(mira, "one")
    kept = checkpoint(client, save).checkpoint
    client.write(mira, "two")
    chat = Chat(client)
    chat.append(mira, ("user", "for this process only"), persist=False)
    (folder,) = Path(daemon.folder, "checkpoints").glob(f"*/{kept.checkpoint_id}/files/a-*")
    shutil.rmtree(folder)
    assert failure(lambda: restore(client, save, kept.checkpoint_id)).kind == ("DATA_LOSS", "CHECKPOINT_DAMAGED")
    assert (client.text(mira), chat.texts(mira)) == ("two", ["for this process only"])
    assert not any(Path(daemon.folder, "exchange").iterdir())


def test_a_save_whose_files_are_damaged_can_be_restored(daemon, save, mira):
    client = daemon.client
    client.write(mira, "one")
    kept = checkpoint(client, save).checkpoint
    daemon.stop()
    for path in Path(daemon.folder, "saves").rglob("*.json"):
        path.unlink()
        path.write_bytes(b"{broken")
    client = daemon.start().client
    after = restore(client, save, kept.checkpoint_id).save
    assert after.epoch > kept.state.epoch
    assert client.text(mira) == "one"


def test_a_restored_save_is_the_same_after_a_restart(daemon, save, mira):
    daemon.client.write(mira, "one")
    kept = checkpoint(daemon.client, save).checkpoint
    daemon.client.write(mira, "two")
    state = restore(daemon.client, save, kept.checkpoint_id).save
    daemon.kill()
    daemon.start()
    assert daemon.client.text(mira) == "one"
    assert daemon.client.read(mira).save.epoch == state.epoch


@pytest.mark.parametrize("save_id", ["", "../up", "a/b\\c:d*?", "CON", "数据 ☠", "x" * 512])
def test_a_save_may_be_called_anything(client, save_id):
    actor = common_pb2.Actor(save_id=save_id, actor_id="anyone")
    client.write(actor, "one")
    kept = checkpoint(client, save_id).checkpoint
    client.write(actor, "two")
    restore(client, save_id, kept.checkpoint_id)
    assert client.text(actor) == "one"


def test_everything_works_in_a_session_that_leaves_no_trace(start_daemon, save, mira):
    daemon = start_daemon("--set", "storage.mode=session")
    client = daemon.client
    client.write(mira, "one")
    made = checkpoint(client, save).checkpoint
    assert made.method == save_pb2.COPY_METHOD_COPIED
    client.write(mira, "two")
    restore(client, save, made.checkpoint_id)
    assert client.text(mira) == "one"
    assert not Path(daemon.folder, "checkpoints").exists()
