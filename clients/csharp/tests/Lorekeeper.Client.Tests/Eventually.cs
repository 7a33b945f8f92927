using System;
using System.Diagnostics;
using System.Threading.Tasks;
using Xunit;

namespace Lorekeeper.Tests;

/// <summary>Waits for what another process does: asks again until it is so, or fails.</summary>
internal static class Eventually
{
    internal static async Task True(Func<bool> condition, TimeSpan within, string what)
    {
        var clock = Stopwatch.StartNew();
        while (!condition())
        {
            Assert.True(clock.Elapsed < within, $"{what} did not happen within {within.TotalSeconds} s.");
            await Task.Delay(20);
        }
    }

    internal static bool IsGone(int processId)
    {
        try
        {
            using var process = Process.GetProcessById(processId);
            return process.HasExited;
        }
        catch (ArgumentException)
        {
            return true;
        }
    }
}
