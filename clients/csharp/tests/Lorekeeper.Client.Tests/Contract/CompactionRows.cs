using System.Linq;
using System.Threading.Tasks;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests.Contract;

public static class CompactionRows
{
    public static async Task Compact(Scene scene)
    {
        var messages = Enumerable.Range(0, 8).Select(n => new CompactMessage { Role = "user", Content = $"fact {n}" });
        var answer = await scene.Calls.Compaction.CompactAsync(new CompactRequest { Messages = { messages }, TargetMessages = 1 });
        Assert.Equal((true, 8, 1), (answer.Compacted, answer.CutIndex, answer.Messages.Count));
    }

    public static async Task PreviewWindow(Scene scene)
    {
        await scene.SayAsync("one", "two", "three");
        var request = new PreviewWindowRequest { Actor = scene.Actor, IncludeMessages = true };
        var preview = await scene.Calls.Compaction.PreviewWindowAsync(request);
        Assert.Equal((3, 0), (preview.Window.Sent, preview.WouldFold));
        Assert.Equal(["one", "two", "three"], preview.Messages.Select(message => message.Content));
    }

    public static async Task GetSummary(Scene scene)
    {
        var summary = await scene.Calls.Compaction.GetSummaryAsync(new GetSummaryRequest { Actor = scene.Actor });
        Assert.Equal(LoadStatus.NotFound, summary.Status);
    }

    public static async Task PutSummary(Scene scene)
    {
        var request = new PutSummaryRequest { Actor = scene.Actor, Text = "existing summary" };
        Assert.Equal("existing summary", (await scene.Calls.Compaction.PutSummaryAsync(request)).Summary.Text);
    }

    public static async Task ClearSummary(Scene scene)
    {
        await scene.Calls.Compaction.PutSummaryAsync(new PutSummaryRequest { Actor = scene.Actor, Text = "existing summary" });
        var request = new ClearSummaryRequest { Actor = scene.Actor };
        Assert.True((await scene.Calls.Compaction.ClearSummaryAsync(request)).Existed);
    }

    public static async Task CountTokens(Scene scene)
    {
        var request = new CountTokensRequest { Texts = { "Hello!", "" }, Counter = TokenCounter.Heuristic };
        Assert.Equal([2, 0], (await scene.Calls.Compaction.CountTokensAsync(request)).Tokens);
    }
}
