using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;

namespace Lorekeeper.Tests;

/// <summary>Where things lie: the repository, the daemon that is tested, folders that a test may fill.</summary>
internal static class Places
{
    internal static string Repository { get; } = typeof(Places).Assembly
        .GetCustomAttributes<AssemblyMetadataAttribute>()
        .First(attribute => attribute.Key == "RepositoryRoot").Value!;

    internal static IReadOnlyList<string> DaemonCommand { get; } =
        Environment.GetEnvironmentVariable("LOREKEEPER_COMMAND") is { Length: > 0 } named
            ? named.Split(' ', StringSplitOptions.RemoveEmptyEntries)
            : [Path.Combine(Repository, ".venv", "bin", "lorekeeper")];

    internal static string NewDataFolder() => Directory.CreateTempSubdirectory("lore-").FullName;

    internal static SidecarOptions Options(string? dataFolder = null) =>
        new(dataFolder ?? NewDataFolder()) { Command = DaemonCommand };
}
