using System;
using System.Linq;
using System.Threading;
using Google.Protobuf;
using Google.Protobuf.WellKnownTypes;
using Grpc.Core;
using Lorekeeper.Wire;

namespace Lorekeeper;

/// <summary>Turns a gRPC status with its details into the exception that a game catches. Knows no call by name.</summary>
internal static class ErrorReader
{
    private const string DetailsKey = "grpc-status-details-bin";

    internal static Exception Read(RpcException error, CancellationToken cancellation) =>
        error.StatusCode == StatusCode.Cancelled && cancellation.IsCancellationRequested
            ? new OperationCanceledException(error.Status.Detail, error, cancellation)
            : ToException(ReadFailure(error));

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
            Message = $"The daemon does not answer: {failure.Message} It was ended or crashed; calls that are safe to "
                + "repeat are repeated once it runs again, this one was not.",
        },
        StatusCode.DeadlineExceeded => failure with
        {
            Message = "The call took longer than its deadline. A change may have been made all the same: repeat it with "
                + "the same idempotency key, or read what is stored. ClientOptions.Deadline sets the deadline.",
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
