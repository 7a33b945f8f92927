using System;
using System.Collections.Generic;
using System.IO;

namespace Lorekeeper;

/// <summary>How to start the daemon.</summary>
/// <param name="DataFolder">The folder that keeps all memory. A game gives a folder in its own user data.</param>
public sealed record SidecarOptions(string DataFolder)
{
    /// <summary>
    /// The program and its first arguments. Empty means: what the environment variable LOREKEEPER_COMMAND names, else the
    /// program beside the game (see <see cref="ProgramFolder"/>), else "lorekeeper" on the PATH.
    /// </summary>
    public IReadOnlyList<string> Command { get; init; } = [];

    /// <summary>
    /// Where the folder "lorekeeper" with the built program lies; empty means beside the game's own program, and in
    /// "../Resources" of a macOS application.
    /// </summary>
    public string ProgramFolder { get; init; } = "";

    /// <summary>
    /// Settings of the daemon, such as "memory.max_versions" = "50"; docs/process.md tells how to list them.
    /// </summary>
    public IReadOnlyDictionary<string, string> Settings { get; init; } = new Dictionary<string, string>();

    /// <summary>How long a start may take; 20 seconds unless said otherwise.</summary>
    public TimeSpan StartTimeout { get; init; } = TimeSpan.FromSeconds(20);

    /// <summary>How long the daemon may take to end before it is killed; 8 seconds unless said otherwise.</summary>
    public TimeSpan StopTimeout { get; init; } = TimeSpan.FromSeconds(8);

    /// <summary>How long to wait after a crash before the daemon is started again; a quarter of a second.</summary>
    public TimeSpan RestartDelay { get; init; } = TimeSpan.FromMilliseconds(250);

    /// <summary>
    /// A daemon that ran this long before it crashed may be started again; one that crashes sooner after a restart stays
    /// down. One minute unless said otherwise.
    /// </summary>
    public TimeSpan RestartWindow { get; init; } = TimeSpan.FromMinutes(1);

    /// <summary>
    /// Start the program by the system's own calls instead of System.Diagnostics.Process, which Unity's IL2CPP does not have.
    /// </summary>
    public bool UseNativeLauncher { get; init; }

    /// <summary>
    /// Reads a command that a person wrote on one line: the path of a program, also with spaces in it, or a program and its
    /// arguments, parted by spaces.
    /// </summary>
    /// <returns>What <see cref="Command"/> takes; empty for a line without a word.</returns>
    public static IReadOnlyList<string> ParseCommand(string line) =>
        File.Exists(line.Trim()) ? [line.Trim()] : line.Split(' ', StringSplitOptions.RemoveEmptyEntries);
}
