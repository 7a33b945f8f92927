using System;
using System.Diagnostics;
using System.IO;

namespace Lorekeeper.Tests;

/// <summary>A game in a process of its own, for tests in which it ends or is killed.</summary>
internal static class Game
{
    internal static Process Start(string behaviour, string dataFolder)
    {
        var program = Path.Combine(AppContext.BaseDirectory, "HeldGame");
        var start = new ProcessStartInfo(program) { RedirectStandardOutput = true, UseShellExecute = false };
        start.ArgumentList.Add(behaviour);
        start.ArgumentList.Add(dataFolder);
        foreach (var part in Places.DaemonCommand)
        {
            start.ArgumentList.Add(part);
        }

        return Process.Start(start)!;
    }
}
