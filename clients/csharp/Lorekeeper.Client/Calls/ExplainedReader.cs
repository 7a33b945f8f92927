using System;
using System.Threading;
using System.Threading.Tasks;
using Grpc.Core;

namespace Lorekeeper;

/// <summary>A stream of answers whose failure is an exception with a reason.</summary>
internal sealed class ExplainedReader<T>(IAsyncStreamReader<T> inner, CancellationToken callCancellation)
    : IAsyncStreamReader<T>
{
    public T Current => inner.Current;

    public async Task<bool> MoveNext(CancellationToken cancellationToken)
    {
        try
        {
            return await inner.MoveNext(cancellationToken).ConfigureAwait(false);
        }
        catch (Exception error) when (error is RpcException or ObjectDisposedException)
        {
            throw ErrorReader.Read(error, cancellationToken.IsCancellationRequested ? cancellationToken : callCancellation);
        }
    }
}
