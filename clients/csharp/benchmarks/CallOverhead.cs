using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Threading.Tasks;

namespace Lorekeeper.Benchmarks;

/// <summary>The same call from C# and from Python, in turns, so that both meet the same machine.</summary>
internal static class CallOverhead
{
    private const int Rounds = 20;
    private const int CallsPerRound = 100;

    internal static async Task MeasureAsync()
    {
        await using var lore = await LorekeeperClient.StartAsync(Places.Options());
        var memory = lore.Save("bench").Npc("mira").Memory;
        await memory.WriteAsync(string.Concat(Enumerable.Repeat("The player spared the wolf.\n", 40)));
        using var python = StartPython(lore.Sidecar!.Handshake);
        var (sharp, snake) = (new List<double>(), new List<double>());
        for (var round = 0; round <= Rounds; round++)
        {
            var here = await FromSharpAsync(memory);
            var there = await FromPythonAsync(python);
            if (round > 0)
            {
                // The first round warms both up.
                sharp.AddRange(here);
                snake.AddRange(there);
            }
        }

        Report("C#", sharp);
        Report("Python", snake);
        var difference = Places.Percentile([.. sharp], 0.5) - Places.Percentile([.. snake], 0.5);
        Console.WriteLine($"GetDocument: C# adds {difference:0.000} ms at p50 (goal: below 0.5 ms)");
    }

    private static async Task<List<double>> FromSharpAsync(NpcMemory memory)
    {
        var times = new List<double>();
        for (var call = 0; call < CallsPerRound; call++)
        {
            var start = Stopwatch.GetTimestamp();
            await memory.ReadAsync();
            times.Add(Stopwatch.GetElapsedTime(start).TotalMilliseconds);
        }

        return times;
    }

    private static async Task<IEnumerable<double>> FromPythonAsync(Process python)
    {
        await python.StandardInput.WriteLineAsync(CallsPerRound.ToString(CultureInfo.InvariantCulture));
        var line = await python.StandardOutput.ReadLineAsync() ?? throw new InvalidOperationException("Python ended.");
        return line.Split(' ').Select(time => double.Parse(time, CultureInfo.InvariantCulture));
    }

    private static Process StartPython(Handshake handshake)
    {
        var start = new ProcessStartInfo(Places.Python)
        {
            ArgumentList = { Path.Combine(Places.Repository, "clients", "csharp", "benchmarks", "python_calls.py") },
            WorkingDirectory = Places.Repository,
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            Environment = { ["LORE_ADDRESS"] = handshake.Address, ["LORE_TOKEN"] = handshake.Token },
        };
        return Process.Start(start)!;
    }

    private static void Report(string language, List<double> times) => Console.WriteLine(
        $"GetDocument from {language}: p50 {Places.Percentile([.. times], 0.5):0.000} ms, p99 {Places.Percentile([.. times], 0.99):0.000} ms ({times.Count} calls)");
}
