using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;

namespace Lorekeeper;

/// <summary>Finds the daemon's program: named, beside the game, or on the PATH.</summary>
internal static class ProgramLocator
{
    internal const string CommandVariable = "LOREKEEPER_COMMAND";

    private const string FolderName = "lorekeeper";

    private static string FileName =>
        RuntimeInformation.IsOSPlatform(OSPlatform.Windows) ? "lorekeeper.exe" : "lorekeeper";

    /// <summary>The program and its first arguments.</summary>
    /// <exception cref="SidecarStartException">There is none.</exception>
    internal static IReadOnlyList<string> Find(SidecarOptions options)
    {
        if (options.Command.Count > 0)
        {
            return options.Command;
        }

        var named = SidecarOptions.ParseCommand(Environment.GetEnvironmentVariable(CommandVariable) ?? "");
        if (named.Count > 0)
        {
            return named;
        }

        var places = Places(options.ProgramFolder).ToList();
        var found = places.Concat(OnPath()).FirstOrDefault(File.Exists);
        return found is null ? throw NotFound(places) : [found];
    }

    private static IEnumerable<string> Places(string programFolder)
    {
        var bases = programFolder.Length > 0
            ? [programFolder]
            : new[] { AppContext.BaseDirectory, Path.Combine(AppContext.BaseDirectory, "..", "Resources") };
        return bases.Select(folder => Path.GetFullPath(Path.Combine(folder, FolderName, FileName)));
    }

    private static IEnumerable<string> OnPath() =>
        (Environment.GetEnvironmentVariable("PATH") ?? "")
            .Split(Path.PathSeparator, StringSplitOptions.RemoveEmptyEntries)
            .Select(folder => Path.Combine(folder, FileName));

    private static SidecarStartException NotFound(IEnumerable<string> places) => new(
        $"The daemon's program was not found. Looked for {string.Join(", ", places)} and on the PATH. Put the built daemon "
        + $"there, set SidecarOptions.Command, or set {CommandVariable}.");
}
