using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// An NPC that is spoken to: lines go in, events come out on the main thread. Lines are answered one after another.
/// </summary>
public sealed class NpcVoice : IDisposable
{
    private readonly GameSession session;
    private readonly Func<Actor> who;
    private readonly SemaphoreSlim oneAtATime = new(1, 1);
    private readonly List<NpcTool> tools = [];
    private CancellationTokenSource speaking = new();
    private Conversation? conversation;
    private Actor? partner;

    internal NpcVoice(GameSession session, Func<Actor> who)
    {
        this.session = session;
        this.who = who;
    }

    /// <summary>The NPC says something more.</summary>
    public event Action<string>? TokenReceived;

    /// <summary>What was said so far in this turn is taken back.</summary>
    public event Action? TakenBack;

    /// <summary>The reply is complete and stored; the whole text.</summary>
    public event Action<string>? Completed;

    /// <summary>
    /// The reply failed: a reason for the program, a message for people. "CANCELLED" when the game cancelled it.
    /// </summary>
    public event Action<string, string>? Failed;

    /// <summary>
    /// The model calls a tool of the game that was offered by <see cref="Offer(string, string, string)"/>.
    /// </summary>
    public event Action<ToolRequest>? ToolCalled;

    /// <summary>
    /// Offers a tool whose calls are answered through <see cref="ToolCalled"/>. Offer tools before the first line.
    /// </summary>
    public void Offer(string name, string description, string parametersJson) =>
        tools.Add(NpcTool.FromSchema(name, description, parametersJson, arguments => AskGame(name, arguments)));

    /// <summary>
    /// Offers a tool with a delegate of its own, which runs on the main thread. Offer tools before the first line.
    /// </summary>
    public void Offer(NpcTool tool) => tools.Add(tool);

    /// <summary>Says a line; returns at once.</summary>
    public void Say(Line line)
    {
        // Its place, its NPC and what cancels it are those of this moment, whenever another thread comes to it.
        var (actor, cancellation) = (who(), speaking.Token);
        var turn = oneAtATime.WaitAsync(cancellation);
        _ = Task.Run(() => SpeakAsync(turn, actor, line, cancellation));
    }

    /// <summary>Ends the reply that is being given, and drops lines that wait.</summary>
    public void Cancel() => Interlocked.Exchange(ref speaking, new CancellationTokenSource()).Cancel();

    /// <summary>Ends everything; no event follows.</summary>
    public void Dispose()
    {
        Cancel();
        TokenReceived = null;
        TakenBack = null;
        Completed = null;
        Failed = null;
        ToolCalled = null;
        EndConversation();
    }

    private async Task SpeakAsync(Task turn, Actor actor, Line line, CancellationToken cancellation)
    {
        try
        {
            await turn.ConfigureAwait(false);
        }
        catch (OperationCanceledException error)
        {
            PostFailure(error);
            return;
        }

        try
        {
            await AnswerAsync(actor, line, cancellation).ConfigureAwait(false);
        }
        catch (Exception error)
        {
            PostFailure(error);
        }
        finally
        {
            oneAtATime.Release();
        }
    }

    private async Task AnswerAsync(Actor actor, Line line, CancellationToken cancellation)
    {
        var (goesOn, begun) = (conversation is not null, false);
        try
        {
            var reply = await ReplyAsync(actor, line, cancellation).ConfigureAwait(false);
            await foreach (var part in reply.ConfigureAwait(false))
            {
                begun = true;
                Post(part);
            }
        }
        catch (LorekeeperCallException error) when (goesOn && !begun && error.Reason.Length == 0)
        {
            // The daemon went since the line before, and the conversation with it: this one opens another. Its id sees to it
            // that it is stored once.
            EndConversation();
            await AnswerAsync(actor, line, cancellation).ConfigureAwait(false);
        }
    }

    private async Task<IAsyncEnumerable<ReplyPart>> ReplyAsync(Actor actor, Line line, CancellationToken cancellation)
    {
        var client = await session.Client.ConfigureAwait(false);
        var npc = client.Npc(actor);
        if (tools.Count == 0)
        {
            return npc.SayAsync(line, cancellation);
        }

        if (!actor.Equals(partner))
        {
            EndConversation();
        }

        conversation ??= await npc.OpenConversationAsync(tools, session.Frames, cancellation).ConfigureAwait(false);
        partner = actor;
        return conversation.SayAsync(line, cancellation);
    }

    private void EndConversation() => _ = Interlocked.Exchange(ref conversation, null)?.DisposeAsync();

    private void Post(ReplyPart part)
    {
        var frames = session.Frames;
        switch (part.Kind)
        {
            case ReplyKind.Text:
                frames.PostText(this, part.Text, text => TokenReceived?.Invoke(text));
                break;
            case ReplyKind.TakenBack:
                frames.PostAfterText(this, () => TakenBack?.Invoke());
                break;
            case ReplyKind.Completed:
                var whole = part.Event!.Completed.Text;
                frames.PostAfterText(this, () => Completed?.Invoke(whole));
                break;
            default:
                break;
        }
    }

    private void PostFailure(Exception error)
    {
        // A conversation that the daemon ended cannot be gone on with; one whose turn failed can.
        if (error is not (TurnFailedException or OperationCanceledException))
        {
            EndConversation();
        }

        var reason = error switch
        {
            OperationCanceledException => "CANCELLED",
            LorekeeperCallException { Reason.Length: > 0 } call => call.Reason,
            LorekeeperCallException call => call.Code.ToString(),
            _ => error.GetType().Name,
        };
        session.Frames.PostAfterText(this, () => Failed?.Invoke(reason, error.Message));
    }

    private Task<string> AskGame(string name, ToolArguments arguments)
    {
        var request = new ToolRequest(name, arguments);
        if (ToolCalled is null)
        {
            request.Fail("The game does not answer this tool.");
        }

        ToolCalled?.Invoke(request);
        return request.Answered;
    }
}
