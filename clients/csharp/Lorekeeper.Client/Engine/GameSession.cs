using System;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// Lorekeeper for an engine: starts the daemon without making a frame wait, brings every result to the main thread, and
/// ends everything when play ends. The engines' add-ons are thin wrappers of this.
/// </summary>
public sealed class GameSession : IDisposable
{
    private readonly CancellationTokenSource ending = new();
    private int disposed;

    private GameSession(Func<CancellationToken, Task<LorekeeperClient>> start, FrameQueue frames)
    {
        Frames = frames;
        Client = Task.Run(() => start(ending.Token));
    }

    /// <summary>The client, once the daemon answers; fails with a <see cref="SidecarStartException"/>.</summary>
    public Task<LorekeeperClient> Client { get; }

    /// <summary>Brings results to the main thread: drain it each frame.</summary>
    public FrameQueue Frames { get; }

    /// <summary>Begins to start the daemon and returns at once.</summary>
    public static GameSession Start(SidecarOptions sidecar, ClientOptions? options, FrameQueue frames) =>
        new(cancellation => LorekeeperClient.StartAsync(sidecar, options, cancellation), frames);

    /// <summary>The voice of an NPC: lines in, events on the main thread out.</summary>
    public NpcVoice Voice(string save, string actor, string role, string player) =>
        Voice(() => new Actor { SaveId = save, ActorId = actor, RoleId = role, PlayerId = player });

    /// <summary>The same for an NPC whose address may change, as when another save is played.</summary>
    /// <param name="who">Is asked with each line, on the thread that says it.</param>
    public NpcVoice Voice(Func<Actor> who) => new(this, who);

    /// <summary>Does something with the client on another thread and tells the outcome on the main thread.</summary>
    public void Run<T>(Func<LorekeeperClient, Task<T>> work, Action<T> done, Action<Exception> failed) =>
        _ = Task.Run(async () =>
        {
            try
            {
                var client = await Client.ConfigureAwait(false);
                var result = await work(client).ConfigureAwait(false);
                Frames.Post(() => done(result));
            }
            catch (Exception error)
            {
                Frames.Post(() => failed(error));
            }
        });

    /// <summary>Closes the connection and ends the daemon; waits for that, a fraction of a second as a rule.</summary>
    public void Dispose()
    {
        if (Interlocked.Exchange(ref disposed, 1) != 0)
        {
            return;
        }

        Frames.Close();
        ending.Cancel();
        Task.Run(EndAsync).GetAwaiter().GetResult();
    }

    private async Task EndAsync()
    {
        try
        {
            await (await Client.ConfigureAwait(false)).DisposeAsync().ConfigureAwait(false);
        }
        catch (Exception error) when (error is LorekeeperException or OperationCanceledException)
        {
            // It never ran: there is nothing to end.
        }
    }
}
