using System;
using System.Threading.Tasks;
using Grpc.Core;
using Grpc.Core.Interceptors;

namespace Lorekeeper;

/// <summary>One unary call with its repetitions. The last attempt is the one that status and trailers tell about.</summary>
internal sealed class RepeatedCall<TRequest, TResponse>(
    Connection connection,
    ClientOptions options,
    TRequest request,
    ClientInterceptorContext<TRequest, TResponse> context,
    Interceptor.AsyncUnaryCallContinuation<TRequest, TResponse> send) : IDisposable
    where TRequest : class
    where TResponse : class
{
    private AsyncUnaryCall<TResponse>? last;

    internal async Task<TResponse> RunAsync()
    {
        for (var attempt = 1; ; attempt++)
        {
            var handshake = connection.Handshake;
            try
            {
                last = send(request, context);
                return await last.ResponseAsync.ConfigureAwait(false);
            }
            catch (RpcException error)
            {
                if (!await MayRepeatAsync(attempt, error, handshake).ConfigureAwait(false))
                {
                    throw ErrorReader.Read(error, context.Options.CancellationToken);
                }
            }
            catch (ObjectDisposedException) when (handshake != connection.Handshake && attempt < options.Attempts)
            {
                // The channel was replaced between choosing it and sending: the next attempt takes the new one.
            }
        }
    }

    internal async Task<Metadata> HeadersAsync() =>
        last is null ? Metadata.Empty : await last.ResponseHeadersAsync.ConfigureAwait(false);

    internal Status GetStatus() => last?.GetStatus() ?? throw new InvalidOperationException("The call has not ended.");

    internal Metadata GetTrailers() =>
        last?.GetTrailers() ?? throw new InvalidOperationException("The call has not ended.");

    public void Dispose() => last?.Dispose();

    private async Task<bool> MayRepeatAsync(int attempt, RpcException error, Handshake handshake)
    {
        if (attempt >= options.Attempts || !RetryRules.IsSafe(context.Method, request))
        {
            return false;
        }

        var failure = ErrorReader.ReadFailure(error);
        if (!RetryRules.Passes(failure))
        {
            return false;
        }

        var cancellation = context.Options.CancellationToken;
        await Task.Delay(RetryRules.Wait(attempt, failure), cancellation).ConfigureAwait(false);
        return failure.FromDaemon || await connection.Recover(handshake, cancellation).ConfigureAwait(false);
    }
}
