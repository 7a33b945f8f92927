using System;
using System.Collections.Generic;
using Grpc.Core;

namespace Lorekeeper;

/// <summary>What is known of a failed call, before it becomes an exception.</summary>
internal sealed record CallFailure(StatusCode Code, string Message)
{
    private static readonly Dictionary<string, string> None = [];

    public string Reason { get; init; } = "";

    public string Field { get; init; } = "";

    public IReadOnlyDictionary<string, string> Details { get; init; } = None;

    public TimeSpan? RetryAfter { get; init; }

    public V1.EditFailure? Edit { get; init; }

    public V1.TurnFailure? Turn { get; init; }

    public RpcException? Cause { get; init; }

    /// <summary>Whether the daemon itself answered: a status without a reason comes from the connection.</summary>
    public bool FromDaemon => Reason.Length > 0;
}
