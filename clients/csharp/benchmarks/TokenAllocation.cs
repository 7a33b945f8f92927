using System;
using System.Text;
using Google.Protobuf;
using Lorekeeper.V1;

namespace Lorekeeper.Benchmarks;

/// <summary>What a token allocates in this client, beside what the generated parser would and what the bare string takes.</summary>
internal static class TokenAllocation
{
    private const int Tokens = 100_000;

    internal static void Measure()
    {
        var answer = new SendResponse
        {
            Save = new SaveState { Revision = 7, Epoch = 1 },
            Event = new TurnEvent { Sequence = 30, TurnId = "turn-1", InputId = "line-1", Text = new TextDelta { Text = "wolves" } },
        }.ToByteArray();
        var text = "wolves"u8.ToArray();
        Report("the string alone", () => Encoding.UTF8.GetString(text).Length);
        Report("a token of this client", () => ReplyPart.From(TurnEventReader.TextOf(answer)!).Text.Length);
        Report("the generated parser", () => SendResponse.Parser.ParseFrom(answer).Event.Text.Text.Length);
    }

    private static void Report(string what, Func<int> token)
    {
        var length = token();
        var before = GC.GetAllocatedBytesForCurrentThread();
        for (var count = 0; count < Tokens; count++)
        {
            length += token();
        }

        var bytes = (GC.GetAllocatedBytesForCurrentThread() - before) / (double)Tokens;
        Console.WriteLine($"Allocated by {what}: {bytes:0.0} bytes ({length} code units read)");
    }
}
