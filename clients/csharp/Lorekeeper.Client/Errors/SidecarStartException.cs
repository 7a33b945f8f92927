using System;
using System.Collections.Generic;
using System.Linq;

namespace Lorekeeper;

/// <summary>The daemon could not be started. The message says why and what to do.</summary>
public sealed class SidecarStartException : LorekeeperException
{
    private static readonly Dictionary<int, string> Meanings = new()
    {
        [1] = "it failed in a way that nobody foresaw; its log has more.",
        [2] = "an option or a setting is wrong.",
        [3] = "another process owns the data folder and does not answer. End that process, or use another data folder.",
        [4] = "the data folder cannot be used: it is not writable, full, no folder, or damaged.",
        [5] = "the data folder was written by a newer version. Bring that version with the game.",
        [6] = "its port cannot be bound.",
    };

    internal SidecarStartException(string message, int? exitCode = null, string log = "", Exception? cause = null)
        : base(message, cause)
    {
        ExitCode = exitCode;
        Log = log;
    }

    /// <summary>
    /// The exit code of the daemon, as docs/process.md lists them; null when it did not get that far.
    /// </summary>
    public int? ExitCode { get; }

    /// <summary>The last lines that the daemon wrote to its log, as JSON lines; never any memory text.</summary>
    public string Log { get; }

    internal static SidecarStartException Ended(int exitCode, string log)
    {
        var meaning = Meanings.TryGetValue(exitCode, out var known) ? known : "it was ended from outside or crashed.";
        return new SidecarStartException(
            $"The daemon ended with code {exitCode} before it was ready: {meaning}{LastWords(log)}", exitCode, log);
    }

    internal static SidecarStartException CrashedAgain(int exitCode, TimeSpan window, string log) => new(
        $"The daemon crashed again, with code {exitCode}, within {window.TotalSeconds:0.#} seconds of its restart, and is not "
        + $"started a third time: dispose this client and start another.{LastWords(log)}",
        exitCode,
        log);

    internal static SidecarStartException NotStartable(string program, string why, Exception? cause = null) => new(
        $"The daemon's program \"{program}\" cannot be started: {why} Give the path of the command \"lorekeeper\", or of the "
        + $"built program, by SidecarOptions.Command or {ProgramLocator.CommandVariable}.",
        cause: cause);

    // What a person would read at the end of the log; what is written for programs is left to Log.
    private static string LastWords(string log)
    {
        var words = log.Split('\n').Select(line => line.Trim()).LastOrDefault(line => line.Length > 0 && line[0] != '{');
        return words is null ? "" : $" It said: {words}";
    }
}
