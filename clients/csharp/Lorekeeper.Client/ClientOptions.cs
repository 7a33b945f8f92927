using System;
using System.Net.Http;

namespace Lorekeeper;

/// <summary>How calls are made.</summary>
public sealed record ClientOptions
{
    /// <summary>
    /// How long a call may take that is no turn and no transfer, with its repetitions; 10 seconds unless said otherwise.
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/> means without bound.
    /// </summary>
    public TimeSpan Deadline { get; init; } = TimeSpan.FromSeconds(10);

    /// <summary>
    /// How often a call that is safe to repeat is tried when the daemon does not answer: reads, and changes with an
    /// idempotency key. 3 unless said otherwise; 1 means never again.
    /// </summary>
    public int Attempts { get; init; } = 3;

    /// <summary>The longest answer in bytes; 64 MiB unless said otherwise.</summary>
    public int MaxAnswerBytes { get; init; } = 64 * 1024 * 1024;

    /// <summary>
    /// Makes the HTTP/2 handler of each connection, where the runtime has none of its own: in Unity this is
    /// YetAnotherHttpHandler with Http2Only. The client disposes what it gets. Null means the runtime's own.
    /// </summary>
    public Func<HttpMessageHandler>? HttpHandler { get; init; }
}
