using System;
using System.Linq;
using System.Threading;
using Google.Protobuf;
using Google.Protobuf.WellKnownTypes;
using Grpc.Core;
using Lorekeeper.Wire;

namespace Lorekeeper;

/// <summary>
/// Turns a gRPC status with its details into the exception that a game catches. Knows no call by name.
/// </summary>
internal static class ErrorReader
{
    private const string DetailsKey = "grpc-status-details-bin";

    /// <summary>Reads the failure of a call, or of the channel that it ran on and that was closed under it.</summary>
    internal static Exception Read(Exception error, CancellationToken cancellation)
    {
        var failed = error as RpcException ?? new RpcException(new Grpc.Core.Status(StatusCode.Cancelled, error.Message));
        return failed.StatusCode == StatusCode.Cancelled && cancellation.IsCancellationRequested
            ? new OperationCanceledException(failed.Status.Detail, failed, cancellation)
            : ToException(ReadFailure(failed));
    }

    internal static CallFailure ReadFailure(RpcException error)
    {
        var failure = new CallFailure(error.StatusCode, error.Status.Detail) { Cause = error };
        var details = error.Trailers.GetValueBytes(DetailsKey);
        return details is null ? Explained(failure) : ReadDetails(failure, details);
    }

    private static CallFailure ReadDetails(CallFailure failure, byte[] details)
    {
        try
        {
            return Wire.Status.Parser.ParseFrom(details).Details.Aggregate(failure, AddDetail);
        }
        catch (InvalidProtocolBufferException)
        {
            return failure;
        }
    }

    private static CallFailure AddDetail(CallFailure failure, Any detail) => Any.GetTypeName(detail.TypeUrl) switch
    {
        "google.rpc.ErrorInfo" => AddInfo(failure, ErrorInfo.Parser.ParseFrom(detail.Value)),
        "google.rpc.BadRequest" => failure with { Field = FirstField(BadRequest.Parser.ParseFrom(detail.Value)) },
        "google.rpc.RetryInfo" =>
            failure with { RetryAfter = RetryInfo.Parser.ParseFrom(detail.Value).RetryDelay?.ToTimeSpan() },
        "lorekeeper.v1.EditFailure" => failure with { Edit = V1.EditFailure.Parser.ParseFrom(detail.Value) },
        "lorekeeper.v1.TurnFailure" => failure with { Turn = V1.TurnFailure.Parser.ParseFrom(detail.Value) },
        _ => failure,
    };

    private static CallFailure AddInfo(CallFailure failure, ErrorInfo info) =>
        failure with { Reason = info.Reason, Details = info.Metadata };

    private static string FirstField(BadRequest request) =>
        request.FieldViolations.Count > 0 ? request.FieldViolations[0].Field : "";

    private static CallFailure Explained(CallFailure failure) => failure.Code switch
    {
        StatusCode.Unavailable => failure with
        {
            Message = "The daemon does not answer: it was ended or it crashed. A turn may be said again; every other call was "
                + "repeated where that was safe. LorekeeperClient.Sidecar tells by State whether a daemon runs again, and by "
                + $"Failure why none does. The connection says: {failure.Message}",
        },
        StatusCode.Cancelled => failure with
        {
            Message = "The call was broken off, because the client was disposed or the daemon that it ran on was replaced. A "
                + "change may have been made all the same: read what is stored, or repeat it.",
        },
        StatusCode.ResourceExhausted => failure with
        {
            Message = "A message is too large: send less at once; for answers, ClientOptions.MaxAnswerBytes sets the limit. The "
                + $"connection says: {failure.Message}",
        },
        StatusCode.DeadlineExceeded => failure with
        {
            Message = "The call took longer than its deadline, which ClientOptions.Deadline sets. A change may have been made "
                + "all the same: read what is stored before it is made again.",
        },
        _ => failure,
    };

    private static LorekeeperCallException ToException(CallFailure failure) => failure switch
    {
        { Edit: { } edit } => new EditFailedException(failure, edit),
        { Turn: { } turn } => new TurnFailedException(failure, turn),
        { Code: StatusCode.Unimplemented } => new NotServedException(failure),
        { Code: StatusCode.Aborted } => new VersionConflictException(failure),
        { Code: StatusCode.Unavailable, FromDaemon: false } => new DaemonUnavailableException(failure),
        _ => new LorekeeperCallException(failure),
    };
}
