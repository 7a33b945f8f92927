namespace Lorekeeper.V1;

/// <summary>A request that changes something and may carry a key that makes its repetition safe.</summary>
internal interface IKeyedRequest
{
    /// <summary>The key; empty when the caller gave none.</summary>
    string IdempotencyKey { get; set; }
}

/// <content>Takes a key.</content>
public sealed partial class AppendMessagesRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class AppendTranscriptRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class ClearHistoryRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class CompactRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class PutSummaryRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class ClearSummaryRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class EditDocumentRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class RevertDocumentRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class ResetDocumentRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class CallToolRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class AddRecordsRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class SupersedeRecordRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class ForgetRecordsRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class ShareRecordRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class PutGroupsRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class PutRetentionRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class EraseActorRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class PutSaveSettingsRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class CreateCheckpointRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class RestoreCheckpointRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class DeleteCheckpointRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class ForkSaveRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class EraseSaveRequest : IKeyedRequest;

/// <content>Takes a key.</content>
public sealed partial class ErasePlayerRequest : IKeyedRequest;
