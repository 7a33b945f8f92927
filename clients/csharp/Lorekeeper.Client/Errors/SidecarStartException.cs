using System;
using System.Collections.Generic;

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

    /// <summary>The exit code of the daemon, as docs/process.md lists them; null when it did not get that far.</summary>
    public int? ExitCode { get; }

    /// <summary>The last lines that the daemon wrote to its log, as JSON lines; never any memory text.</summary>
    public string Log { get; }

    internal static SidecarStartException Ended(int exitCode, string log)
    {
        var meaning = Meanings.TryGetValue(exitCode, out var known) ? known : "it was ended from outside or crashed.";
        return new SidecarStartException($"The daemon ended with code {exitCode} before it was ready: {meaning}", exitCode, log);
    }
}
