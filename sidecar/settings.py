"""Every limit of the daemon in one place: name, default, minimum, maximum, unit, meaning.

A section is a frozen data class; ``daemon/config.py`` fills them from a file, the environment and flags, and
``lorekeeper serve --print-config`` lists them. Rooms receive their section and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def section(settings: type[T]) -> type[T]:
    """A frozen data class without comparison and text form: making those costs every start some milliseconds."""
    return dataclass(frozen=True, eq=False, repr=False)(settings)


def limit(default: float | None, low: float, high: float, unit: str, meaning: str) -> Any:
    """A number between ``low`` and ``high`` (both allowed)."""
    return field(
        default=default,
        metadata={"low": low, "high": high, "unit": unit, "meaning": meaning},
    )


def option(default: Any, meaning: str, *choices: str) -> Any:
    """A text or a switch; with ``choices``, one of them."""
    return field(default=default, metadata={"choices": choices, "meaning": meaning})


@section
class MemorySettings:
    """The explicit memory document and its tool."""

    max_document_chars: int = limit(200_000, 1_000, 2_000_000, "code points", "the longest document")
    max_versions: int = limit(30, 1, 1_000, "versions", "versions kept of a document")
    max_arguments_chars: int = limit(
        1_000_000, 1_000, 10_000_000, "code points", "the arguments of one tool call as JSON"
    )
    max_edits: int = limit(256, 1, 4_096, "edits", "edits in one EditDocument call")
    max_cached_chars: int = limit(
        4_000_000, 0, 1_000_000_000, "code points", "documents and versions kept in memory for reading"
    )
    kept_answers: int = limit(64, 1, 4_096, "answers", "answers kept per actor for idempotency keys")


@section
class BackendSettings:
    """Talking to language-model servers."""

    max_backends: int = limit(100, 1, 10_000, "backends", "backends that a game may put")
    max_connections: int = limit(512, 1, 10_000, "connections", "connections open at once, of all backends together")
    max_event_bytes: int = limit(4_194_304, 65_536, 268_435_456, "bytes", "one event of a streamed answer")
    max_answer_bytes: int = limit(67_108_864, 65_536, 1_073_741_824, "bytes", "one answer, all its events together")
    end_grace_ms: int = limit(500, 0, 60_000, "ms", "time for the token count of an answer that is complete")
    retry_wait_ms: int = limit(2_000, 0, 60_000, "ms", "wait before the first retry; doubled for each further one")
    max_retry_wait_ms: int = limit(30_000, 0, 600_000, "ms", "longest wait; a server that asks for more is not asked")
    probe_timeout_ms: int = limit(2_000, 100, 60_000, "ms", "time to find out a model's window before its first turn")


@section
class TurnSettings:
    """Turns and the conversations that they belong to."""

    max_schema_chars: int = limit(65_536, 100, 1_000_000, "code points", "the schema of one tool or answer")
    max_result_chars: int = limit(1_000_000, 1_000, 10_000_000, "code points", "what a tool of the game answers")
    max_waiting_lines: int = limit(16, 1, 1_000, "lines", "lines that wait in one conversation")
    max_rounds: int = limit(
        200, 1, 10_000, "rounds", "rounds of tool calls in one turn, also where a role has no bound"
    )
    max_calls: int = limit(64, 1, 1_024, "calls", "tool calls in one answer of a model")
    max_waiting_events: int = limit(1_024, 1, 100_000, "events", "events that a slow game may leave unread in a turn")


@section
class SavesSettings:
    """Checkpoints, restores, forks, exports and imports."""

    max_checkpoints: int = limit(1_000, 1, 100_000, "checkpoints", "checkpoints of a save")
    kept_safety_checkpoints: int = limit(5, 1, 1_000, "checkpoints", "safety checkpoints kept of a save, the newest")
    max_name_chars: int = limit(512, 1, 512, "code points", "the longest name of a save or a checkpoint")
    max_metadata: int = limit(64, 1, 64, "entries", "metadata entries of a checkpoint")
    max_metadata_key_chars: int = limit(256, 1, 256, "code points", "the longest metadata key")
    max_metadata_value_chars: int = limit(4_096, 1, 4_096, "code points", "the longest metadata value")
    wait_seconds: float = limit(10.0, 0.0, 600.0, "seconds", "how long a call waits for a save that is exchanged")
    grace_seconds: float = limit(0.25, 0.0, 60.0, "seconds", "time for running calls to end before a save is exchanged")
    kept_answers: int = limit(256, 1, 65_536, "answers", "answers kept for keys of forks, erasures and deletions")
    automatic_poll_seconds: float = limit(
        15.0, 0.05, 3_600.0, "seconds", "how often it is looked whether an automatic checkpoint is due"
    )
    max_archive_bytes: int = limit(
        4_294_967_296, 1_024, 1_099_511_627_776, "bytes", "the largest file that is imported"
    )
    max_unpacked_bytes: int = limit(
        4_294_967_296, 1_024, 1_099_511_627_776, "bytes", "the most that an imported file may unpack to"
    )
    max_archive_files: int = limit(1_000_000, 1, 10_000_000, "files", "files in an imported file or folder")
    max_archive_object_bytes: int = limit(
        268_435_456, 1_048_576, 17_179_869_184, "bytes", "a file of JSON, or a line of a journal, in an imported file"
    )
    max_pack_ratio: int = limit(400, 2, 100_000, "times", "how many times its packed size a file may unpack to")
    max_skipped: int = limit(1_000, 1, 1_000, "items", "items that an import lists as not taken")


@section
class RecordSettings:
    """Records and their journals."""

    max_records_per_save: int = limit(100_000, 1, 10_000_000, "records", "records that a save holds")
    max_records_per_owner: int = limit(100_000, 1, 10_000_000, "records", "records that one owner holds")
    max_batch: int = limit(4_096, 1, 65_536, "records", "records in one AddRecords call")
    max_payload_chars: int = limit(10_000_000, 1_000, 10_000_000, "code points", "the longest payload")
    max_text_chars: int = limit(1_000_000, 1_000, 1_000_000, "code points", "the longest searchable text")
    max_tags: int = limit(256, 1, 256, "tags", "tags of a record, after doubles are dropped")
    max_audience: int = limit(256, 1, 256, "groups", "groups in the audience of a record")
    max_shares: int = limit(256, 1, 4_096, "shares", "shares that one call may give a record")
    max_metadata: int = limit(256, 1, 256, "entries", "metadata entries of a record")
    max_metadata_key_chars: int = limit(256, 1, 256, "code points", "the longest metadata key")
    max_metadata_value_chars: int = limit(65_536, 1, 65_536, "code points", "the longest metadata value")
    max_filter_items: int = limit(256, 1, 256, "items", "scopes or tags in one filter")
    max_owners: int = limit(256, 1, 4_096, "owners", "owners named in one call")
    max_forget_ids: int = limit(4_096, 1, 65_536, "ids", "ids in one ForgetRecords call")
    max_groups: int = limit(1_000, 1, 100_000, "groups", "groups of a save")
    max_members: int = limit(10_000, 1, 1_000_000, "members", "members of a group")
    max_tool_result_chars: int = limit(
        262_144, 1_024, 10_000_000, "code points", "the longest answer of the search tool; records are left out whole"
    )
    kept_answers: int = limit(1_024, 1, 100_000, "answers", "answers kept for idempotency keys")
    max_cached_owners: int = limit(4_096, 16, 1_000_000, "owners", "owners kept open in memory")
    max_cached_records: int = limit(4_096, 64, 1_000_000, "records", "whole records kept in memory")
    max_waiting_bytes: int = limit(
        16_777_216, 1, 1_073_741_824, "bytes", "records whose journals wait; beyond, adding helps"
    )


@section
class SearchSettings:
    """Search and its derived index."""

    language: str = option("english", "the language of the texts: its words are stemmed and its stop words dropped")
    default_hits: int = limit(10, 0, 512, "hits", "hits of a search that names no limit")
    max_hits: int = limit(512, 1, 512, "hits", "the most hits of a search; more are lowered and told as a cut")
    max_query_chars: int = limit(1_000_000, 1_000, 1_000_000, "code points", "the longest query text")
    max_cached_views: int = limit(4_096, 16, 1_000_000, "owners", "owners whose words are kept in memory")
    max_cached_rows: int = limit(200_000, 1_000, 10_000_000, "records", "records whose words are kept in memory")
    max_recent_answers: int = limit(512, 1, 100_000, "answers", "answers kept while nothing of their save changes")
    max_cached_vector_bytes: int = limit(
        536_870_912, 1_048_576, 68_719_476_736, "bytes", "vectors kept in memory; one owner's are kept in any case"
    )
    max_compared: int = limit(
        1_000_000, 1, 100_000_000, "vectors", "vectors that one query compares; beyond: words only"
    )
    query_embedding_seconds: float = limit(
        3.0, 0.001, 300.0, "seconds", "the longest wait for the vector of a query; beyond: words only"
    )
    embedding_batch: int = limit(16, 1, 256, "texts", "texts embedded together in the background")
    max_embedding_owners: int = limit(
        20_000, 16, 1_000_000, "owners", "owners whose new records wait for vectors; others are found later"
    )
    near_duplicate_similarity: float = limit(
        0.95, 0.0, 1.0, "cosine", "from here on a record is flagged as near duplicate; 0: none is"
    )
    max_open_indexes: int = limit(
        32, 1, 10_000, "saves", "saves whose index stays open, with three files each; others are opened when asked"
    )
    index_batch: int = limit(256, 1, 10_000, "owners", "owners indexed in one transaction")
    index_delay_seconds: float = limit(0.3, 0.0, 60.0, "seconds", "how long changes wait to be indexed together")


@section
class ChatSettings:
    """History, transcript and roles."""

    max_messages: int = limit(500, 1, 100_000, "messages", "messages that a history keeps")
    max_transcript_rows: int = limit(2_000, 1, 1_000_000, "rows", "rows that a transcript keeps")
    max_content_chars: int = limit(
        1_000_000, 1_000, 10_000_000, "code points", "the longest message or line of a player"
    )
    max_batch: int = limit(500, 1, 10_000, "messages", "messages or rows in one call")
    max_cached_chars: int = limit(
        16_000_000, 0, 1_000_000_000, "code points", "stored histories kept in memory for reading"
    )
    max_session_chars: int = limit(
        64_000_000, 1_000, 10_000_000_000, "code points", "messages that live as long as the process, of all actors"
    )
    max_archived_messages: int = limit(
        20_000, 1, 1_000_000, "messages", "archived messages of an actor; the oldest go for new ones"
    )
    kept_answers: int = limit(64, 1, 4_096, "answers", "answers kept per actor for idempotency keys")
    max_roles: int = limit(1_000, 1, 100_000, "roles", "roles that a game may put")


@section
class CompactionSettings:
    """Keeping conversations within their windows."""

    window_tokens: int = limit(8_192, 256, 16_777_216, "tokens", "a model's window where nothing else tells it")
    max_summary_chars: int = limit(200_000, 1_000, 2_000_000, "code points", "the longest summary that a game may put")
    tokenizer_path: str = option("", "a tokenizer.json that counts tokens exactly; empty: estimates")
    max_calls: int = limit(8, 1, 100, "calls", "calls of the summariser in one compaction")
    model_threads: int = limit(4, 1, 64, "threads", "compactions that wait for a language model at once")
    max_waiting_compactions: int = limit(64, 1, 10_000, "compactions", "compactions by a model that wait or run")
    max_conversation: int = limit(2_000, 1, 10_000, "messages", "messages of a conversation that the game holds")
    max_count_texts: int = limit(4_096, 1, 65_536, "texts", "texts in one CountTokens call")
    max_count_chars: int = limit(4_000_000, 1_000, 100_000_000, "code points", "of all texts in one CountTokens call")


@section
class StorageSettings:
    """How bytes reach the disk."""

    durability: str = option(
        "full",
        "full: success is told after fsync; relaxed: after the write (a power cut may lose the last second)",
        "full",
        "relaxed",
    )
    mode: str = option(
        "persistent",
        "persistent: the data folder; session: nothing touches the disk, all is gone at exit",
        "persistent",
        "session",
    )
    disk_threads: int = limit(8, 1, 64, "threads", "threads that read and write the data folder")
    max_waiting_calls: int = limit(4_096, 1, 100_000, "calls", "calls that may wait for the disk")


@section
class DaemonSettings:
    """The process: calls, messages, how it ends, what it writes about itself."""

    max_message_bytes: int = limit(
        33_554_432, 1_048_576, 1_073_741_824, "bytes", "the largest message received; answers stay under 4 MiB"
    )
    max_concurrent_calls: int = limit(1_024, 8, 100_000, "calls", "calls and streams open at once")
    max_connections: int = limit(256, 8, 100_000, "connections", "connections of clients at once; more are closed")
    max_page_size: int = limit(1_000, 1, 10_000, "items", "the largest page of a list")
    default_page_size: int = limit(100, 1, 10_000, "items", "the page of a list when the request names none")
    drain_seconds: float = limit(5.0, 0.0, 300.0, "seconds", "time for running calls to finish at a stop")
    parent_poll_seconds: float = limit(0.5, 0.05, 60.0, "seconds", "how often the parent process is looked at")
    attach_seconds: float = limit(10.0, 0.1, 300.0, "seconds", "how long a second start waits for the first")
    kept_diagnostics: int = limit(1_000, 1, 100_000, "diagnostics", "diagnostics kept for a late watcher")
    max_watchers: int = limit(16, 1, 1_000, "streams", "WatchDiagnostics streams at once")
    max_health_watchers: int = limit(64, 1, 1_000, "streams", "streams of the health service's Watch at once")
    max_watched_codes: int = limit(256, 1, 4_096, "codes", "codes that one WatchDiagnostics stream asks for")
    log_level: str = option("info", "what is logged", "debug", "info", "warning", "error")
    log_bytes: int = limit(1_048_576, 10_240, 1_073_741_824, "bytes", "size at which the log file is rotated")
    log_files: int = limit(3, 0, 100, "files", "rotated log files kept; 0 writes no log file")


@section
class EmbeddingSettings:
    """Which model turns text into vectors, and how much of the machine it may take."""

    model: str = option(
        "auto",
        "auto: a folder in the data folder's models, else the built-in model; none; the name of a model; "
        "the absolute path of a model folder; or openai: the server named by openai_url",
    )
    openai_url: str = option("", "address of an OpenAI-compatible server, with or without /v1/embeddings")
    openai_model: str = option("", "the model's name on that server")
    openai_version: str = option("1", "part of the identity: change it when the server's model changes")
    openai_key_env: str = option("", "the environment variable that holds the server's key")
    openai_query_prefix: str = option("", "put before each query sent to the server")
    openai_document_prefix: str = option("", "put before each document sent to the server")
    openai_allow_remote: bool = option(False, "let texts leave this machine")
    openai_allow_plain_remote: bool = option(False, "let texts leave this machine without TLS")
    openai_dimensions: int = limit(0, 0, 65_536, "dimensions", "length of its vectors; 0: ask the server once")
    openai_timeout_seconds: float = limit(120.0, 0.1, 1_800, "seconds", "the longest wait for one request")
    max_request_bytes: int = limit(8_000_000, 1_024, 64_000_000, "bytes", "the largest request to a server")
    max_response_bytes: int = limit(64_000_000, 1_024, 512_000_000, "bytes", "the largest answer of a server")
    max_text_chars: int = limit(
        100_000, 1, 1_000_000, "code points", "what is read of one text; the rest is cut and told"
    )
    max_texts: int = limit(256, 1, 4_096, "texts", "texts in one call")
    max_tokens: int = limit(512, 3, 8_192, "tokens", "tokens read of one text, where the model allows more")
    max_batch_size: int = limit(16, 1, 256, "texts", "texts in one run of the model")
    max_batch_tokens: int = limit(32_768, 16, 1_048_576, "tokens", "tokens in one run of the model")
    aimed_batch_tokens: int = limit(
        256, 1, 1_048_576, "tokens", "tokens that a run aims at: larger runs leave the processor's cache"
    )
    max_tensor_bytes: int = limit(268_435_456, 4_194_304, 2_147_483_648, "bytes", "tensors of one run")
    max_model_bytes: int = limit(1_073_741_824, 1_048_576, 4_294_967_296, "bytes", "a model's weights")
    max_concurrent: int = limit(1, 1, 32, "runs", "model runs at once, of queries and of documents each")
    max_queued: int = limit(16, 0, 4_096, "calls", "calls that may wait for a run, of queries and of documents each")
    queue_seconds: float = limit(5.0, 0.001, 300, "seconds", "the longest wait in the queue")
    inference_seconds: float = limit(30.0, 0.01, 1_800, "seconds", "the longest time of one call's own work")
    load_seconds: float = limit(120.0, 1, 1_800, "seconds", "the longest time to load a model")
    intra_op_threads: int = limit(1, 0, 256, "threads", "threads of one run; 0: what ONNX Runtime chooses")
    max_cached_queries: int = limit(1_024, 0, 100_000, "queries", "query vectors kept in memory")


@section
class Config:
    """All sections; what is not set is at its default."""

    daemon: DaemonSettings = field(default_factory=DaemonSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    backends: BackendSettings = field(default_factory=BackendSettings)
    turns: TurnSettings = field(default_factory=TurnSettings)
    saves: SavesSettings = field(default_factory=SavesSettings)
    records: RecordSettings = field(default_factory=RecordSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    chat: ChatSettings = field(default_factory=ChatSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
