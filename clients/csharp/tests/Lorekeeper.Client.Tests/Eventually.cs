using System;
using System.Diagnostics;
using System.IO;
using System.Threading.Tasks;
using Xunit;

namespace Lorekeeper.Tests;

/// <summary>Waits for what another process does: asks again until it is so, or fails.</summary>
internal static class Eventually
{
    /// <returns>How long it took.</returns>
    internal static async Task<TimeSpan> True(Func<bool> condition, TimeSpan within, string what)
    {
        var clock = Stopwatch.StartNew();
        while (!condition())
        {
            Assert.True(clock.Elapsed < within, $"{what} did not happen within {within.TotalSeconds} s.");
            await Task.Delay(20);
        }

        return clock.Elapsed;
    }

    /// <summary>
    /// Whether a process has ended. One that nobody has collected has: on Linux that may take the system seconds.
    /// </summary>
    internal static bool IsGone(int processId)
    {
        try
        {
            using var process = Process.GetProcessById(processId);
            return process.HasExited || (OperatingSystem.IsLinux() && IsLeftOver(processId));
        }
        catch (ArgumentException)
        {
            return true;
        }
    }

    private static bool IsLeftOver(int processId)
    {
        try
        {
            var told = File.ReadAllText($"/proc/{processId}/stat");
            return told[told.LastIndexOf(')') + 2] == 'Z';
        }
        catch (IOException)
        {
            return true;
        }
    }
}
