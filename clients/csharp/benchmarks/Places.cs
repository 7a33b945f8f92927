using System;
using System.IO;
using System.Linq;
using System.Reflection;

namespace Lorekeeper.Benchmarks;

/// <summary>Where things lie, and how a figure is taken from many times.</summary>
internal static class Places
{
    internal static string Repository { get; } = typeof(Places).Assembly
        .GetCustomAttributes<AssemblyMetadataAttribute>()
        .First(attribute => attribute.Key == "RepositoryRoot").Value!;

    internal static string Python { get; } = Path.Combine(Repository, ".venv", "bin", "python");

    internal static SidecarOptions Options() => new(Directory.CreateTempSubdirectory("lore-bench-").FullName)
    {
        Command = [Path.Combine(Repository, ".venv", "bin", "lorekeeper")],
    };

    internal static double Percentile(double[] times, double share) =>
        times.Order().ElementAt((int)Math.Min(times.Length - 1, times.Length * share));
}
