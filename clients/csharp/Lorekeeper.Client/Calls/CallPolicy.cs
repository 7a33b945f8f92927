using System;
using System.Threading;
using System.Threading.Tasks;
using Google.Protobuf;
using Grpc.Core;
using Grpc.Core.Interceptors;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// What every call of the generated clients gets: a deadline, an idempotency key where it changes something, repetition
/// where that is safe, and exceptions with a reason.
/// </summary>
internal sealed class CallPolicy(Connection connection, ClientOptions options) : Interceptor
{
    /// <inheritdoc/>
    public override AsyncUnaryCall<TResponse> AsyncUnaryCall<TRequest, TResponse>(
        TRequest request,
        ClientInterceptorContext<TRequest, TResponse> context,
        AsyncUnaryCallContinuation<TRequest, TResponse> continuation)
    {
        var call = new RepeatedCall<TRequest, TResponse>(
            connection, options, WithKey(request), WithDeadline(context), continuation);
        return new AsyncUnaryCall<TResponse>(
            call.RunAsync(), call.HeadersAsync(), call.GetStatus, call.GetTrailers, call.Dispose);
    }

    /// <inheritdoc/>
    public override AsyncServerStreamingCall<TResponse> AsyncServerStreamingCall<TRequest, TResponse>(
        TRequest request,
        ClientInterceptorContext<TRequest, TResponse> context,
        AsyncServerStreamingCallContinuation<TRequest, TResponse> continuation)
    {
        var call = continuation(request, context);
        return new AsyncServerStreamingCall<TResponse>(
            new ExplainedReader<TResponse>(call.ResponseStream, context.Options.CancellationToken),
            call.ResponseHeadersAsync,
            call.GetStatus,
            call.GetTrailers,
            call.Dispose);
    }

    /// <inheritdoc/>
    public override AsyncClientStreamingCall<TRequest, TResponse> AsyncClientStreamingCall<TRequest, TResponse>(
        ClientInterceptorContext<TRequest, TResponse> context,
        AsyncClientStreamingCallContinuation<TRequest, TResponse> continuation)
    {
        var call = continuation(context);
        return new AsyncClientStreamingCall<TRequest, TResponse>(
            call.RequestStream,
            ExplainAsync(call.ResponseAsync, context.Options.CancellationToken),
            call.ResponseHeadersAsync,
            call.GetStatus,
            call.GetTrailers,
            call.Dispose);
    }

    /// <inheritdoc/>
    public override AsyncDuplexStreamingCall<TRequest, TResponse> AsyncDuplexStreamingCall<TRequest, TResponse>(
        ClientInterceptorContext<TRequest, TResponse> context,
        AsyncDuplexStreamingCallContinuation<TRequest, TResponse> continuation)
    {
        var call = continuation(context);
        return new AsyncDuplexStreamingCall<TRequest, TResponse>(
            call.RequestStream,
            new ExplainedReader<TResponse>(call.ResponseStream, context.Options.CancellationToken),
            call.ResponseHeadersAsync,
            call.GetStatus,
            call.GetTrailers,
            call.Dispose);
    }

    // The caller's own message is left as it is: sent again later, it would carry the key of this call.
    private static TRequest WithKey<TRequest>(TRequest request)
        where TRequest : class
    {
        if (request is not IKeyedRequest { IdempotencyKey.Length: 0 } || request is not IDeepCloneable<TRequest> original)
        {
            return request;
        }

        var copy = original.Clone();
        ((IKeyedRequest)copy).IdempotencyKey = Guid.NewGuid().ToString("N");
        return copy;
    }

    private ClientInterceptorContext<TRequest, TResponse> WithDeadline<TRequest, TResponse>(
        ClientInterceptorContext<TRequest, TResponse> context)
        where TRequest : class
        where TResponse : class =>
        context.Options.Deadline is not null || options.Deadline == Timeout.InfiniteTimeSpan
            ? context
            : new ClientInterceptorContext<TRequest, TResponse>(
                context.Method, context.Host, context.Options.WithDeadline(DateTime.UtcNow + options.Deadline));

    private static async Task<TResponse> ExplainAsync<TResponse>(Task<TResponse> response, CancellationToken cancellation)
    {
        try
        {
            return await response.ConfigureAwait(false);
        }
        catch (RpcException error)
        {
            throw ErrorReader.Read(error, cancellation);
        }
    }
}
