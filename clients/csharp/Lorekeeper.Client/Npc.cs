using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// One who remembers in one save: what it knows, what happened to it, and talking to it. A handle without state; making one
/// costs nothing and calls nothing.
/// </summary>
public sealed class Npc
{
    private readonly Calls calls;

    internal Npc(Calls calls, Actor actor)
    {
        this.calls = calls;
        Actor = actor;
        Memory = new NpcMemory(calls, actor);
        Records = new NpcRecords(calls, actor);
    }

    /// <summary>The address in the words of the contract.</summary>
    public Actor Actor { get; }

    /// <summary>The one text that it knows, and that a model edits.</summary>
    public NpcMemory Memory { get; }

    /// <summary>Single memories at moments of the game, and finding them.</summary>
    public NpcRecords Records { get; }

    /// <summary>
    /// Says a line and streams the reply, with the daemon's own tools. Print each part, or look at its kind.
    /// </summary>
    /// <exception cref="TurnFailedException">The turn failed.</exception>
    /// <exception cref="OperationCanceledException">It was cancelled; the player's line stays stored.</exception>
    public IAsyncEnumerable<ReplyPart> SayAsync(Line line, CancellationToken cancellation = default) =>
        Turn.PlayAsync(calls.Turns, new SendRequest { Actor = Actor, Input = Line.ToInput(line) }, cancellation);

    /// <summary>Says a line and returns the whole reply.</summary>
    /// <exception cref="TurnFailedException">The turn failed.</exception>
    public async Task<string> AskAsync(Line line, CancellationToken cancellation = default)
    {
        var said = new StringBuilder();
        await foreach (var part in SayAsync(line, cancellation).ConfigureAwait(false))
        {
            if (part.Kind == ReplyKind.Completed)
            {
                return part.Event!.Completed.Text;
            }

            said.Append(part.Text);
        }

        return said.ToString();
    }

    /// <summary>
    /// Opens a conversation in which the game offers tools. Their delegates run on the synchronization context that this is
    /// called on, so in a game on its main thread; where there is none, on the thread pool.
    /// </summary>
    public Task<Conversation> OpenConversationAsync(
        IReadOnlyList<NpcTool> tools, CancellationToken cancellation = default) =>
        OpenConversationAsync(tools, SynchronizationContext.Current, cancellation);

    /// <summary>
    /// The same with delegates that run on a context that the game names; null means on the thread pool.
    /// </summary>
    public Task<Conversation> OpenConversationAsync(
        IReadOnlyList<NpcTool> tools, SynchronizationContext? home, CancellationToken cancellation = default) =>
        Conversation.OpenAsync(calls.Turns, Actor, tools, home, cancellation);

    /// <summary>Adds what was said without asking a model, such as scripted dialogue.</summary>
    public async Task HeardAsync(IEnumerable<Utterance> said, CancellationToken cancellation = default)
    {
        var request = new AppendMessagesRequest { Actor = Actor, Messages = { said.Select(one => one.ToMessage()) } };
        await calls.Chat.AppendMessagesAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
    }

    /// <summary>Reads the newest messages, oldest first; null means all that are kept.</summary>
    public async Task<IReadOnlyList<Utterance>> HistoryAsync(int? newest = null, CancellationToken cancellation = default)
    {
        var request = new ListMessagesRequest { Actor = Actor, PageSize = newest ?? 0 };
        var page = await calls.Chat.ListMessagesAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return page.Messages.Select(Utterance.From).ToList();
    }

    /// <summary>Deletes history, transcript and summary; memory and records stay.</summary>
    public async Task ClearHistoryAsync(CancellationToken cancellation = default) =>
        await calls.Chat.ClearHistoryAsync(new ClearHistoryRequest { Actor = Actor }, cancellationToken: cancellation)
            .ConfigureAwait(false);

    /// <summary>Forgets this actor completely, also in checkpoints.</summary>
    /// <returns>Whether there was anything to forget.</returns>
    public async Task<bool> EraseAsync(CancellationToken cancellation = default)
    {
        var request = new EraseActorRequest { Actor = Actor };
        var answer = await calls.Memory.EraseActorAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return answer.Existed;
    }
}
