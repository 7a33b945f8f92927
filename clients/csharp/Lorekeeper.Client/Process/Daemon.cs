using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Lorekeeper;

/// <summary>One run of the daemon: the program, its handshake, its end. Knows nothing of restarts.</summary>
internal sealed class Daemon : IDisposable
{
    private readonly IChildProcess child;
    private readonly LogTail log;
    private readonly TimeSpan stopTimeout;

    private Daemon(IChildProcess child, SidecarOptions options)
    {
        this.child = child;
        log = LogTail.Follow(child.Errors);
        stopTimeout = options.StopTimeout;
    }

    internal Handshake Handshake { get; private set; } = null!;

    /// <summary>
    /// Ends with the exit code. A daemon that belongs to somebody else is not ours to watch: this never ends.
    /// </summary>
    internal Task<int> Exit => Handshake.Reused ? new TaskCompletionSource<int>().Task : child.Exit;

    /// <summary>The end of what it wrote to its log.</summary>
    internal string Log => log.Text;

    /// <summary>Starts the program and reads its first line.</summary>
    internal static async Task<Daemon> StartAsync(SidecarOptions options, CancellationToken cancellation)
    {
        ILauncher launcher = options.UseNativeLauncher ? NativeLauncher.ForThisSystem() : new ManagedLauncher();
        var daemon = new Daemon(launcher.Start(CommandLine(options)), options);
        try
        {
            daemon.Handshake = await daemon.ReadHandshakeAsync(options.StartTimeout, cancellation).ConfigureAwait(false);
            return daemon;
        }
        catch
        {
            daemon.child.CloseInput();
            daemon.child.Kill();
            daemon.Dispose();
            throw;
        }
    }

    /// <summary>Closes the lifeline, waits, and kills a daemon of our own that does not end.</summary>
    internal async Task StopAsync()
    {
        child.CloseInput();
        var ended = await Task.WhenAny(child.Exit, Task.Delay(stopTimeout)).ConfigureAwait(false);
        if (ended != child.Exit)
        {
            child.Kill();
        }

        Dispose();
    }

    /// <summary>Closes the lifeline and does not wait: for a process that is about to end.</summary>
    internal void LetGo() => child.CloseInput();

    public void Dispose() => child.Dispose();

    private static List<string> CommandLine(SidecarOptions options)
    {
        var command = new List<string>(ProgramLocator.Find(options))
        {
            "serve",
            "--data-dir", options.DataFolder,
            "--parent-pid", OwnProcess.Id.ToString(CultureInfo.InvariantCulture),
            "--stdin-lifeline",
        };
        foreach (var setting in options.Settings)
        {
            command.AddRange(["--set", $"{setting.Key}={setting.Value}"]);
        }

        return command;
    }

    private async Task<Handshake> ReadHandshakeAsync(TimeSpan timeout, CancellationToken cancellation)
    {
        var reading = ReadLineAsync();
        var waiting = Task.Delay(timeout, cancellation);
        if (await Task.WhenAny(reading, waiting).ConfigureAwait(false) == waiting)
        {
            cancellation.ThrowIfCancellationRequested();
            throw new SidecarStartException(
                $"The daemon was not ready within {timeout.TotalSeconds:0.#} seconds. A first start can be slow while a virus "
                + "scanner reads the program: raise SidecarOptions.StartTimeout, or look at its log.",
                log: Log);
        }

        var line = await reading.ConfigureAwait(false);
        return line is null
            ? throw SidecarStartException.Ended(await child.Exit.ConfigureAwait(false), Log)
            : Parse(line);
    }

    private async Task<string?> ReadLineAsync()
    {
        var reader = new StreamReader(child.Output, new UTF8Encoding(false));
        return await reader.ReadLineAsync().ConfigureAwait(false);
    }

    private Handshake Parse(string line)
    {
        try
        {
            return Handshake.Parse(line);
        }
        catch (FormatException error)
        {
            throw new SidecarStartException(
                "The program answered with something that is not a daemon's line. Is SidecarOptions.Command right?",
                log: Log,
                cause: error);
        }
    }
}
