using System;
using System.Diagnostics;
using System.Threading.Tasks;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Lorekeeper.Tests;

/// <summary>
/// This same program run once more as a game of its own, for tests in which a game ends or is killed.
/// </summary>
internal static class Game
{
    internal const string Variable = "LOREKEEPER_TEST_GAME";

    internal static Process Start(string behaviour, string dataFolder)
    {
        var start = new ProcessStartInfo(Environment.ProcessPath!)
        {
            RedirectStandardOutput = true,
            UseShellExecute = false,
            Environment = { [Variable] = behaviour + ":" + dataFolder },
        };
        return Process.Start(start)!;
    }

    [ModuleInitializer]
    internal static void PlayWhenAsked()
    {
        var asked = Environment.GetEnvironmentVariable(Variable);
        if (asked is null)
        {
            return;
        }

        var (behaviour, folder) = (asked[..asked.IndexOf(':')], asked[(asked.IndexOf(':') + 1)..]);
        Environment.SetEnvironmentVariable(Variable, null);
        Task.Run(() => PlayAsync(behaviour, folder)).GetAwaiter().GetResult();
        Environment.Exit(0);
    }

    private static async Task PlayAsync(string behaviour, string folder)
    {
        var client = await LorekeeperClient.StartAsync(Places.Options(folder));
        Console.WriteLine(client.Sidecar!.Handshake.ProcessId);
        if (behaviour == "hold")
        {
            await Task.Delay(Timeout.Infinite);
        }
    }
}
