using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using Google.Protobuf;
using Grpc.Core;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>One turn with the daemon's own tools: a request, then what happens until it ends.</summary>
internal static class Turn
{
    private static readonly Method<SendRequest, object> Send = new(
        MethodType.ServerStreaming,
        "lorekeeper.v1.ChatService",
        "Send",
        Marshallers.Create<SendRequest>(request => request.ToByteArray(), _ => throw new NotSupportedException()),
        TurnEventReader.OfSend);

    internal static async IAsyncEnumerable<ReplyPart> PlayAsync(
        CallInvoker invoker, SendRequest request, [EnumeratorCancellation] CancellationToken cancellation)
    {
        using var call = invoker.AsyncServerStreamingCall(Send, null, new CallOptions(cancellationToken: cancellation), request);
        var events = call.ResponseStream;
        while (true)
        {
            try
            {
                if (!await events.MoveNext(CancellationToken.None).ConfigureAwait(false))
                {
                    yield break;
                }
            }
            catch (Exception error) when (error is RpcException or ObjectDisposedException)
            {
                throw ErrorReader.Read(error, cancellation);
            }

            yield return ReplyPart.From(events.Current);
        }
    }
}
