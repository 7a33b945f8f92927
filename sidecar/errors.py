"""Every error that the daemon tells a client, and the one list of reasons.

Rooms below ``daemon/`` know nothing of gRPC: they raise one of these, and ``daemon/mapping.py`` turns it into a
status with ``google.rpc.ErrorInfo`` (domain ``lorekeeper``, reason, metadata) and, where a field is at fault,
``google.rpc.BadRequest``.

    LorekeeperError
    ├── InvalidInput      INVALID_ARGUMENT     a field is wrong; ``field`` names it
    ├── NotFound          NOT_FOUND
    ├── AlreadyExists     ALREADY_EXISTS       an id or a key used again for other content
    ├── Stale             ABORTED              ``expected_version`` is not the version any more
    ├── NotReady          FAILED_PRECONDITION  a model not loaded, a save being restored
    ├── LimitReached      RESOURCE_EXHAUSTED   a limit or a full queue or disk
    ├── Corrupt           DATA_LOSS            an authoritative file cannot be read; nothing is overwritten
    ├── Unavailable       UNAVAILABLE          something outside is down
    ├── TimedOut          DEADLINE_EXCEEDED
    ├── Unauthenticated   UNAUTHENTICATED
    ├── Denied            PERMISSION_DENIED
    └── NotBuilt          UNIMPLEMENTED        the contract has it, this version does not

A message says what happened and what to do. It never carries memory text, a token or a key: those may be large,
private, or both, and messages end up in logs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """The closed list of reasons; ``docs/errors.md`` explains each one and a test compares the two."""

    # input
    FIELD_INVALID = "FIELD_INVALID"
    FIELD_REQUIRED = "FIELD_REQUIRED"
    FIELD_TOO_LONG = "FIELD_TOO_LONG"
    TOO_MANY_ITEMS = "TOO_MANY_ITEMS"
    PAGE_TOKEN_INVALID = "PAGE_TOKEN_INVALID"
    # the memory tool
    ACTION_REQUIRED = "ACTION_REQUIRED"
    UNKNOWN_ACTION = "UNKNOWN_ACTION"
    CONTENT_REQUIRED = "CONTENT_REQUIRED"
    OLD_TEXT_REQUIRED = "OLD_TEXT_REQUIRED"
    NEW_TEXT_REQUIRED = "NEW_TEXT_REQUIRED"
    NOT_FOUND = "NOT_FOUND"
    LINE_NOT_POSITIVE = "LINE_NOT_POSITIVE"
    LABEL_BLANK = "LABEL_BLANK"
    CONFLICTING_TEXT = "CONFLICTING_TEXT"
    VERSION_MISMATCH = "VERSION_MISMATCH"
    DOCUMENT_UNREADABLE = "DOCUMENT_UNREADABLE"
    STORE_FAILED = "STORE_FAILED"
    TOOL_UNKNOWN = "TOOL_UNKNOWN"
    # documents and actors
    VERSION_NOT_FOUND = "VERSION_NOT_FOUND"
    DOCUMENT_TOO_LARGE = "DOCUMENT_TOO_LARGE"
    IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
    # backends and turns
    BACKEND_NOT_FOUND = "BACKEND_NOT_FOUND"
    ADDRESS_NOT_ALLOWED = "ADDRESS_NOT_ALLOWED"
    SCHEMA_INVALID = "SCHEMA_INVALID"
    AUTH_EXPIRED = "AUTH_EXPIRED"
    PAYMENT_REQUIRED = "PAYMENT_REQUIRED"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    RATE_LIMITED = "RATE_LIMITED"
    INVALID_REQUEST = "INVALID_REQUEST"
    CONTEXT_LENGTH_EXCEEDED = "CONTEXT_LENGTH_EXCEEDED"
    BACKEND_UNAVAILABLE = "BACKEND_UNAVAILABLE"
    TIMEOUT = "TIMEOUT"
    EMPTY_RESPONSE = "EMPTY_RESPONSE"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    ANSWER_INVALID = "ANSWER_INVALID"
    SAVE_CHANGED = "SAVE_CHANGED"
    # saves
    SAVE_BUSY = "SAVE_BUSY"
    SAVE_RESTORED = "SAVE_RESTORED"
    SAVE_NOT_FOUND = "SAVE_NOT_FOUND"
    SAVE_EXISTS = "SAVE_EXISTS"
    EPOCH_MISMATCH = "EPOCH_MISMATCH"
    CHECKPOINT_NOT_FOUND = "CHECKPOINT_NOT_FOUND"
    CHECKPOINT_OF_OTHER_SAVE = "CHECKPOINT_OF_OTHER_SAVE"
    CHECKPOINT_DAMAGED = "CHECKPOINT_DAMAGED"
    TOO_MANY_CHECKPOINTS = "TOO_MANY_CHECKPOINTS"
    ARCHIVE_INVALID = "ARCHIVE_INVALID"
    ARCHIVE_TOO_LARGE = "ARCHIVE_TOO_LARGE"
    ARCHIVE_TOO_NEW = "ARCHIVE_TOO_NEW"
    # records
    RECORD_NOT_FOUND = "RECORD_NOT_FOUND"
    CONTENT_CONFLICT = "CONTENT_CONFLICT"
    RECORD_SUPERSEDED = "RECORD_SUPERSEDED"
    TOO_MANY_RECORDS = "TOO_MANY_RECORDS"
    OWNER_NOT_ALLOWED = "OWNER_NOT_ALLOWED"
    FUTURE_MOMENT = "FUTURE_MOMENT"
    # chat and compaction
    TOKENIZER_UNUSABLE = "TOKENIZER_UNUSABLE"
    SESSION_FULL = "SESSION_FULL"
    # storage
    STORAGE_CORRUPT = "STORAGE_CORRUPT"
    STORAGE_FULL = "STORAGE_FULL"
    STORAGE_GONE = "STORAGE_GONE"
    STORAGE_READ_ONLY = "STORAGE_READ_ONLY"
    STORAGE_UNSAFE = "STORAGE_UNSAFE"
    FORMAT_TOO_NEW = "FORMAT_TOO_NEW"
    # embedding
    NO_MODEL = "NO_MODEL"
    MODEL_LOADING = "MODEL_LOADING"
    MODEL_NOT_FOUND = "MODEL_NOT_FOUND"
    MODEL_EXISTS = "MODEL_EXISTS"
    MODEL_UNLOADED = "MODEL_UNLOADED"
    MISSING_MODEL_FILE = "MISSING_MODEL_FILE"
    MODEL_INTEGRITY = "MODEL_INTEGRITY"
    UNSUPPORTED_MODEL = "UNSUPPORTED_MODEL"
    MODEL_LOAD_TIMEOUT = "MODEL_LOAD_TIMEOUT"
    EMBEDDING_CONFIGURATION = "EMBEDDING_CONFIGURATION"
    EMBEDDING_CANCELLED = "EMBEDDING_CANCELLED"
    QUEUE_FULL = "QUEUE_FULL"
    QUEUE_TIMEOUT = "QUEUE_TIMEOUT"
    INFERENCE_TIMEOUT = "INFERENCE_TIMEOUT"
    TOKENIZATION_FAILED = "TOKENIZATION_FAILED"
    INFERENCE_FAILED = "INFERENCE_FAILED"
    INVALID_OUTPUT = "INVALID_OUTPUT"
    VECTORS_UNAVAILABLE = "VECTORS_UNAVAILABLE"
    # the daemon
    TOKEN_INVALID = "TOKEN_INVALID"
    TOO_MANY_CALLS = "TOO_MANY_CALLS"
    NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
    INTERNAL = "INTERNAL"


class LorekeeperError(Exception):
    """The base of all errors that a client is told.

    ``metadata`` holds what a program needs to react (a limit's name and value, the current version), as strings.
    ``field`` is the path of the field at fault, in the request's own names (``edits[2].write.content``). ``detail`` is
    a message of the contract that tells more, as data. ``retry_after_ms`` says when trying again may help.

        try:
            store.edit(...)
        except LorekeeperError as error:
            log(error.reason, error.metadata)
    """

    code = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        reason: Reason,
        field: str = "",
        detail: Any = None,
        **metadata: Any,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.field = field
        self.detail = detail
        self.retry_after_ms: int | None = None
        self.metadata = {name: str(value) for name, value in metadata.items()}


class InvalidInput(LorekeeperError):
    """A field of the request is wrong. Nothing was changed."""

    code = "INVALID_ARGUMENT"


class NotFound(LorekeeperError):
    """What the request names does not exist."""

    code = "NOT_FOUND"


class AlreadyExists(LorekeeperError):
    """An id or an idempotency key was used before for other content."""

    code = "ALREADY_EXISTS"


class Stale(LorekeeperError):
    """The caller's version is not the current one: read again, then repeat."""

    code = "ABORTED"


class NotReady(LorekeeperError):
    """The state does not allow the call now; the message says what must happen first."""

    code = "FAILED_PRECONDITION"


class LimitReached(LorekeeperError):
    """A limit, a queue or the disk is full; ``metadata`` names the limit and its value."""

    code = "RESOURCE_EXHAUSTED"


class Corrupt(LorekeeperError):
    """An authoritative file cannot be read. It is left as it is; ``lorekeeper repair`` is the way out."""

    code = "DATA_LOSS"


class Unavailable(LorekeeperError):
    """Something that the call needs is down for now: try again later."""

    code = "UNAVAILABLE"


class TimedOut(LorekeeperError):
    """The work took longer than its limit allows."""

    code = "DEADLINE_EXCEEDED"


class Unauthenticated(LorekeeperError):
    """The call carries no token, or a wrong one."""

    code = "UNAUTHENTICATED"


class Denied(LorekeeperError):
    """The caller may not do this to that owner."""

    code = "PERMISSION_DENIED"


class NotBuilt(LorekeeperError):
    """The contract has the call, this version of the daemon does not answer it yet."""

    code = "UNIMPLEMENTED"
