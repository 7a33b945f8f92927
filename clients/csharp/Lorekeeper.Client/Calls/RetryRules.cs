using System;
using System.Linq;
using Grpc.Core;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>Which calls are safe to repeat, and how long to wait before that. Plain rules, no I/O.</summary>
internal static class RetryRules
{
    private static readonly string[] ReadingVerbs =
        ["Get", "List", "Search", "Preview", "Count", "BuildPrompt", "Embed"];

    /// <summary>Reads are, and changes that carry an idempotency key: the daemon answers a repeat with the first answer.</summary>
    internal static bool IsSafe(IMethod method, object request) =>
        request is IKeyedRequest { IdempotencyKey.Length: > 0 }
        || ReadingVerbs.Any(verb => method.Name.StartsWith(verb, StringComparison.Ordinal));

    /// <summary>Whether a failure is one that passes: nobody answered, or the daemon told how long to wait.</summary>
    internal static bool Passes(CallFailure failure) => failure switch
    {
        { Code: StatusCode.Unavailable } => true,
        { Code: StatusCode.ResourceExhausted, RetryAfter: not null } => true,
        _ => false,
    };

    /// <summary>How long to wait after an attempt, counted from 1: what the daemon said, else 0.1 s, 0.2 s, 0.4 s … up to 2 s.</summary>
    internal static TimeSpan Wait(int attempt, CallFailure failure) =>
        failure.RetryAfter ?? TimeSpan.FromMilliseconds(Math.Min(100 << Math.Min(attempt - 1, 10), 2_000));
}
