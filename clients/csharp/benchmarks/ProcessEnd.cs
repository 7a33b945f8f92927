using System;
using System.Diagnostics;
using System.Threading.Tasks;

namespace Lorekeeper.Benchmarks;

/// <summary>How long a start takes until the first answer, and how soon a daemon is gone after its client.</summary>
internal static class ProcessEnd
{
    private const int Rounds = 10;

    internal static async Task MeasureAsync()
    {
        var starts = new double[Rounds];
        var ends = new double[Rounds];
        for (var round = 0; round < Rounds; round++)
        {
            var clock = Stopwatch.StartNew();
            var client = await LorekeeperClient.StartAsync(Places.Options());
            await client.GetInfoAsync();
            starts[round] = clock.Elapsed.TotalMilliseconds;
            clock.Restart();
            await client.DisposeAsync();
            ends[round] = clock.Elapsed.TotalMilliseconds;
        }

        Console.WriteLine($"Start to first answer: p50 {Places.Percentile(starts, 0.5):0} ms");
        Console.WriteLine($"Dispose until the daemon is gone: p50 {Places.Percentile(ends, 0.5):0} ms");
    }
}
