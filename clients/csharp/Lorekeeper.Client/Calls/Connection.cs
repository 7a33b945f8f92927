using System;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;
using Grpc.Core;
using Grpc.Net.Client;

namespace Lorekeeper;

/// <summary>
/// The channel to the daemon that runs now, with its token on every call. After a restart new calls go to the new daemon
/// while the generated clients stay the same.
/// </summary>
internal sealed class Connection : CallInvoker, IDisposable
{
    private readonly ClientOptions options;
    private Line line;
    private bool disposed;

    internal Connection(Handshake handshake, ClientOptions options)
    {
        this.options = options;
        line = new Line(handshake, options);
    }

    /// <summary>Waits until a daemon runs after the one that did not answer; without a sidecar there is nothing to wait for.</summary>
    internal Func<Handshake, CancellationToken, Task<bool>> Recover { get; set; } = (_, _) => Task.FromResult(true);

    internal Handshake Handshake => Volatile.Read(ref line).Handshake;

    /// <summary>Sends new calls to another daemon; calls that run on the old one end with it.</summary>
    internal void Use(Handshake handshake)
    {
        if (disposed)
        {
            return;
        }

        Interlocked.Exchange(ref line, new Line(handshake, options)).Dispose();
    }

    public void Dispose()
    {
        disposed = true;
        Volatile.Read(ref line).Dispose();
    }

    /// <inheritdoc/>
    public override TResponse BlockingUnaryCall<TRequest, TResponse>(
        Method<TRequest, TResponse> method, string? host, CallOptions options, TRequest request) =>
        Current.Invoker.BlockingUnaryCall(method, host, Current.Sign(options), request);

    /// <inheritdoc/>
    public override AsyncUnaryCall<TResponse> AsyncUnaryCall<TRequest, TResponse>(
        Method<TRequest, TResponse> method, string? host, CallOptions options, TRequest request)
    {
        var now = Current;
        return now.Invoker.AsyncUnaryCall(method, host, now.Sign(options), request);
    }

    /// <inheritdoc/>
    public override AsyncServerStreamingCall<TResponse> AsyncServerStreamingCall<TRequest, TResponse>(
        Method<TRequest, TResponse> method, string? host, CallOptions options, TRequest request)
    {
        var now = Current;
        return now.Invoker.AsyncServerStreamingCall(method, host, now.Sign(options), request);
    }

    /// <inheritdoc/>
    public override AsyncClientStreamingCall<TRequest, TResponse> AsyncClientStreamingCall<TRequest, TResponse>(
        Method<TRequest, TResponse> method, string? host, CallOptions options)
    {
        var now = Current;
        return now.Invoker.AsyncClientStreamingCall(method, host, now.Sign(options));
    }

    /// <inheritdoc/>
    public override AsyncDuplexStreamingCall<TRequest, TResponse> AsyncDuplexStreamingCall<TRequest, TResponse>(
        Method<TRequest, TResponse> method, string? host, CallOptions options)
    {
        var now = Current;
        return now.Invoker.AsyncDuplexStreamingCall(method, host, now.Sign(options));
    }

    private Line Current => disposed ? throw new ObjectDisposedException(nameof(LorekeeperClient)) : Volatile.Read(ref line);

    /// <summary>One channel with the token that belongs to it.</summary>
    private sealed class Line : IDisposable
    {
        private readonly GrpcChannel channel;
        private readonly string authorization;

        internal Line(Handshake handshake, ClientOptions options)
        {
            Handshake = handshake;
            authorization = "Bearer " + handshake.Token;
            channel = GrpcChannel.ForAddress("http://" + handshake.Address, new GrpcChannelOptions
            {
                HttpHandler = options.HttpHandler?.Invoke() ?? OwnHandler(),
                DisposeHttpClient = true,
                MaxReceiveMessageSize = options.MaxAnswerBytes,
                MaxSendMessageSize = null,
            });
            Invoker = channel.CreateCallInvoker();
        }

        internal Handshake Handshake { get; }

        internal CallInvoker Invoker { get; }

        internal CallOptions Sign(CallOptions options)
        {
            var headers = new Metadata { { "authorization", authorization } };
            foreach (var header in options.Headers ?? Metadata.Empty)
            {
                headers.Add(header);
            }

            return options.WithHeaders(headers);
        }

        public void Dispose() => channel.Dispose();

        // No proxy: the daemon is on this machine, and a proxy that a player has set up would not find it.
#if NET
        private static SocketsHttpHandler OwnHandler() => new()
        {
            UseProxy = false,
            EnableMultipleHttp2Connections = true,
            PooledConnectionIdleTimeout = Timeout.InfiniteTimeSpan,
        };
#else
        private static HttpClientHandler OwnHandler() => new() { UseProxy = false };
#endif
    }
}
