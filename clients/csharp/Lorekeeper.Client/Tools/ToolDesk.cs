using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// Answers the calls of the game's tools: finds the delegate, runs it where the game wants it, sends its answer.
/// </summary>
internal sealed class ToolDesk(
    IReadOnlyList<NpcTool> tools, SynchronizationContext? home, Func<ConverseRequest, Task> send)
{
    private volatile IReadOnlyList<NpcTool> offered = tools;

    internal void Replace(IReadOnlyList<NpcTool> next) => offered = next;

    /// <summary>Begins to answer a call, if it is one of the game's; the reply goes on meanwhile.</summary>
    internal void Answer(ToolCallEvent? called)
    {
        if (called is { Origin: ToolOrigin.Game })
        {
            _ = AnswerAsync(called);
        }
    }

    private async Task AnswerAsync(ToolCallEvent called)
    {
        var result = await RunAsync(called).ConfigureAwait(false);
        try
        {
            await send(new ConverseRequest { ToolResult = result }).ConfigureAwait(false);
        }
        catch (LorekeeperException)
        {
            // The conversation ended while the tool ran: nobody waits for the answer.
        }
    }

    private async Task<GameToolResult> RunAsync(ToolCallEvent called)
    {
        var tool = offered.FirstOrDefault(one => one.Name == called.Name);
        if (tool is null)
        {
            return Failed(called, "The game does not offer this tool any more.");
        }

        try
        {
            var text = await AtHome(() => tool.RunAsync(called.ArgumentsJson)).ConfigureAwait(false);
            return new GameToolResult { CallId = called.CallId, Result = text };
        }
        catch (Exception error)
        {
            // Whatever a game's delegate throws is the model's to read: it may correct itself, and the turn goes on.
            return Failed(called, error.Message);
        }
    }

    private static GameToolResult Failed(ToolCallEvent called, string why) =>
        new() { CallId = called.CallId, Result = why, Failed = true };

    private Task<string> AtHome(Func<Task<string>> run)
    {
        if (home is null)
        {
            return Task.Run(run);
        }

        var done = new TaskCompletionSource<Task<string>>(TaskCreationOptions.RunContinuationsAsynchronously);
        home.Post(_ => done.SetResult(run()), null);
        return done.Task.Unwrap();
    }
}
