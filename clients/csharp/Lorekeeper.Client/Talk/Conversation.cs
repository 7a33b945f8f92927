using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Google.Protobuf;
using Grpc.Core;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// A conversation in which the game offers tools. The game says lines; the NPC's calls of the game's tools are answered by
/// their delegates while the reply is read.
/// </summary>
/// <remarks>One line at a time: read a reply to its end, or leave its loop, before the next line is said.</remarks>
public sealed class Conversation : IAsyncDisposable
{
    private static readonly Method<ConverseRequest, object> Converse = new(
        MethodType.DuplexStreaming,
        "lorekeeper.v1.ChatService",
        "Converse",
        Marshallers.Create<ConverseRequest>(request => request.ToByteArray(), _ => throw new NotSupportedException()),
        TurnEventReader.OfConverse);

    private const string Over =
        "The conversation has ended, because it or the client was disposed or the daemon went: open another.";

    private static readonly TimeSpan CancelTimeout = TimeSpan.FromSeconds(5);

    private readonly AsyncDuplexStreamingCall<ConverseRequest, object> call;
    private readonly SemaphoreSlim writing = new(1, 1);
    private readonly ToolDesk tools;
    private int speaking;

    private Conversation(
        AsyncDuplexStreamingCall<ConverseRequest, object> call,
        IReadOnlyList<NpcTool> tools,
        SynchronizationContext? home)
    {
        this.call = call;
        this.tools = new ToolDesk(tools, home, WriteAsync);
    }

    internal static async Task<Conversation> OpenAsync(
        CallInvoker invoker,
        Actor actor,
        IReadOnlyList<NpcTool> tools,
        SynchronizationContext? home,
        CancellationToken cancellation)
    {
        cancellation.ThrowIfCancellationRequested();
        var call = invoker.AsyncDuplexStreamingCall(Converse, null, new CallOptions());
        var conversation = new Conversation(call, tools, home);
        using var registration = cancellation.Register(call.Dispose);
        try
        {
            var open = new ConverseOpen { Actor = actor, Tools = { tools.Select(tool => tool.Declaration) } };
            await conversation.WriteAsync(new ConverseRequest { Open = open }).ConfigureAwait(false);
            await conversation.ReadAsync(cancellation).ConfigureAwait(false);
            return conversation;
        }
        catch
        {
            call.Dispose();
            cancellation.ThrowIfCancellationRequested();
            throw;
        }
    }

    /// <summary>
    /// Says a line and reads the reply. Cancelling, or leaving the loop, ends the turn; the conversation goes on.
    /// </summary>
    /// <exception cref="TurnFailedException">The turn failed; another line may be said.</exception>
    /// <exception cref="OperationCanceledException">The turn was cancelled.</exception>
    public async IAsyncEnumerable<ReplyPart> SayAsync(
        Line line, [EnumeratorCancellation] CancellationToken cancellation = default)
    {
        var input = Line.ToInput(line);
        cancellation.ThrowIfCancellationRequested();
        if (Interlocked.Exchange(ref speaking, 1) != 0)
        {
            throw new InvalidOperationException("The reply to the line before is still being read: read it to its end first.");
        }

        var ended = false;
        try
        {
            await WriteAsync(new ConverseRequest { Line = input }).ConfigureAwait(false);
            using var registration = cancellation.Register(() => _ = CancelAsync());
            while (!ended)
            {
                var part = await ReadAsync(cancellation).ConfigureAwait(false);
                ended = part.Kind == ReplyKind.Completed || part.Event?.TurnFailed is not null;
                ThrowIfFailed(part, cancellation);
                tools.Answer(part.Event?.ToolCall);
                yield return part;
            }
        }
        finally
        {
            if (!ended)
            {
                await FinishAsync().ConfigureAwait(false);
            }

            Volatile.Write(ref speaking, 0);
        }
    }

    /// <summary>Replaces the tools that the game offers, from the next line on.</summary>
    public Task OfferAsync(IReadOnlyList<NpcTool> offered)
    {
        tools.Replace(offered);
        var declared = new GameTools { Tools = { offered.Select(tool => tool.Declaration) } };
        return WriteAsync(new ConverseRequest { Tools = declared });
    }

    /// <summary>Ends the conversation, and the turn that runs.</summary>
    public ValueTask DisposeAsync()
    {
        call.Dispose();
        return default;
    }

    private static void ThrowIfFailed(ReplyPart part, CancellationToken cancellation)
    {
        if (part.Event?.TurnFailed is not { } failure)
        {
            return;
        }

        if (failure.Code == TurnFailureCode.Cancelled)
        {
            throw new OperationCanceledException(failure.Message, cancellation);
        }

        throw TurnFailedException.From(failure);
    }

    private async Task<ReplyPart> ReadAsync(CancellationToken cancellation)
    {
        try
        {
            return await call.ResponseStream.MoveNext(CancellationToken.None).ConfigureAwait(false)
                ? ReplyPart.From(call.ResponseStream.Current)
                : throw Ended("The daemon ended the conversation: open another.");
        }
        catch (RpcException error)
        {
            throw ErrorReader.Read(error, cancellation);
        }
        catch (ObjectDisposedException)
        {
            cancellation.ThrowIfCancellationRequested();
            throw Ended(Over);
        }
    }

    private async Task WriteAsync(ConverseRequest request)
    {
        await writing.WaitAsync().ConfigureAwait(false);
        try
        {
            await call.RequestStream.WriteAsync(request).ConfigureAwait(false);
        }
        catch (RpcException error)
        {
            throw ErrorReader.Read(error, CancellationToken.None);
        }
        catch (InvalidOperationException)
        {
            throw Ended(Over);
        }
        finally
        {
            writing.Release();
        }
    }

    private async Task CancelAsync()
    {
        try
        {
            await WriteAsync(new ConverseRequest { Cancel = new CancelTurn() }).ConfigureAwait(false);
        }
        catch (LorekeeperException)
        {
            // The conversation has ended, and the turn with it.
        }
    }

    // Somebody stopped reading: the turn is ended and what is left of it is read, so that the next line begins clean.
    private async Task FinishAsync()
    {
        using var patience = new CancellationTokenSource(CancelTimeout);
        using var registration = patience.Token.Register(call.Dispose);
        try
        {
            await CancelAsync().ConfigureAwait(false);
            ReplyPart part;
            do
            {
                part = await ReadAsync(patience.Token).ConfigureAwait(false);
            }
            while (part.Kind != ReplyKind.Completed && part.Event?.TurnFailed is null);
        }
        catch (Exception error) when (error is LorekeeperException or OperationCanceledException)
        {
            // The conversation is over; the next line says so.
        }
    }

    private static DaemonUnavailableException Ended(string message) =>
        new(new CallFailure(StatusCode.Unavailable, message));
}
