using System;
using System.Threading;
using System.Threading.Tasks;

namespace Lorekeeper;

/// <summary>What a sidecar is doing.</summary>
public enum SidecarState
{
    /// <summary>It answers.</summary>
    Running,

    /// <summary>It crashed, or the one that was attached to is gone, and another is being started.</summary>
    Restarting,

    /// <summary>It was stopped.</summary>
    Stopped,

    /// <summary>It crashed again soon after a restart, or could not be started again; calls fail.</summary>
    Failed,
}

/// <summary>
/// The daemon of a game: found, started hidden with a lifeline, started again once after a crash, ended with the game.
/// </summary>
/// <remarks>
/// Where a daemon runs on the data folder already, this attaches to it, and starts one of its own when that one goes.
/// The daemon ends when this is disposed, when the process ends, and when the process crashes or is killed.
/// </remarks>
public sealed class SidecarProcess : IAsyncDisposable, IDisposable
{
    private readonly SidecarOptions options;
    private readonly RestartBudget budget;
    private readonly SemaphoreSlim oneAtATime = new(1, 1);
    private readonly CancellationTokenSource stopping = new();
    private Daemon daemon;
    private int stopped;

    private SidecarProcess(SidecarOptions options, Daemon daemon)
    {
        this.options = options;
        this.daemon = daemon;
        budget = new RestartBudget(options.RestartWindow);
        AppDomain.CurrentDomain.ProcessExit += LetGo;
        _ = WatchAsync(daemon);
    }

    /// <summary>
    /// Raised when another daemon runs than before: after a crash, or after the one attached to went. On any thread.
    /// </summary>
    public event Action<Handshake>? Restarted;

    /// <summary>What it is doing now.</summary>
    public SidecarState State { get; private set; }

    /// <summary>How to reach the daemon that runs now.</summary>
    public Handshake Handshake => daemon.Handshake;

    /// <summary>
    /// Why it could not be started again; null unless <see cref="State"/> is <see cref="SidecarState.Failed"/>.
    /// </summary>
    public LorekeeperException? Failure { get; private set; }

    /// <summary>
    /// Starts the daemon, or attaches to the one that runs on the data folder, and returns once it answers.
    /// </summary>
    /// <exception cref="SidecarStartException">It could not be found or started.</exception>
    /// <exception cref="ArgumentException">The options name no data folder.</exception>
    public static async Task<SidecarProcess> StartAsync(
        SidecarOptions options, CancellationToken cancellation = default)
    {
        if (string.IsNullOrWhiteSpace(options?.DataFolder))
        {
            throw new ArgumentException("Name a data folder: a folder for this game in the user's own data.", nameof(options));
        }

        return new(options, await Daemon.StartAsync(options, cancellation).ConfigureAwait(false));
    }

    /// <summary>
    /// Waits until another daemon runs than the one that failed to answer.
    /// </summary>
    /// <returns>Whether one runs, so that a call that is safe to repeat may be repeated.</returns>
    internal async Task<bool> RecoverAsync(Handshake failed, CancellationToken cancellation)
    {
        await oneAtATime.WaitAsync(cancellation).ConfigureAwait(false);
        try
        {
            return State == SidecarState.Running
                && (failed != Handshake || StillRuns || await ReplaceAsync().ConfigureAwait(false));
        }
        finally
        {
            oneAtATime.Release();
        }
    }

    /// <summary>Ends the daemon: running calls have 0.3 seconds, everything acknowledged is on the disk.</summary>
    public async Task StopAsync()
    {
        if (Interlocked.Exchange(ref stopped, 1) != 0)
        {
            return;
        }

        AppDomain.CurrentDomain.ProcessExit -= LetGo;
        stopping.Cancel();
        await oneAtATime.WaitAsync().ConfigureAwait(false);
        try
        {
            State = SidecarState.Stopped;
            await daemon.StopAsync().ConfigureAwait(false);
        }
        finally
        {
            oneAtATime.Release();
        }
    }

    /// <summary>The same as <see cref="StopAsync"/>.</summary>
    public ValueTask DisposeAsync() => new(StopAsync());

    /// <summary>The same as <see cref="StopAsync"/>, waiting for it; safe on any thread.</summary>
    public void Dispose() => Task.Run(StopAsync).GetAwaiter().GetResult();

    private bool StillRuns => !Handshake.Reused && !daemon.Exit.IsCompleted;

    private void LetGo(object? sender, EventArgs e) => daemon.LetGo();

    private async Task WatchAsync(Daemon watched)
    {
        await watched.Exit.ConfigureAwait(false);
        if (Volatile.Read(ref stopped) == 0)
        {
            await RecoverAsync(watched.Handshake, CancellationToken.None).ConfigureAwait(false);
        }
    }

    private async Task<bool> ReplaceAsync()
    {
        if (!Handshake.Reused && !budget.TryTake(DateTime.UtcNow))
        {
            var exitCode = await daemon.Exit.ConfigureAwait(false);
            return Fail(SidecarStartException.CrashedAgain(exitCode, options.RestartWindow, daemon.Log));
        }

        State = SidecarState.Restarting;
        try
        {
            await Task.Delay(options.RestartDelay, stopping.Token).ConfigureAwait(false);
            var next = await Daemon.StartAsync(options, stopping.Token).ConfigureAwait(false);
            Use(next);
            return true;
        }
        catch (SidecarStartException error)
        {
            return Fail(error);
        }
        catch (OperationCanceledException)
        {
            return false;
        }
    }

    private void Use(Daemon next)
    {
        daemon.Dispose();
        daemon = next;
        State = SidecarState.Running;
        _ = WatchAsync(next);
        Restarted?.Invoke(next.Handshake);
    }

    private bool Fail(LorekeeperException error)
    {
        Failure = error;
        State = SidecarState.Failed;
        return false;
    }
}
