using System.Linq;
using System.Threading.Tasks;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests.Contract;

public static class SearchRows
{
    public static async Task Search(Scene scene)
    {
        await scene.AddAsync(Scene.Fact("now", "A quiet cat", tick: 2), Scene.Fact("later", "A loud cat", tick: 8));
        await scene.Save.Npc("orin").Records.AddAsync(new Remembrance("Another's cat", 2));
        var filter = new RecordFilter { AtOrBefore = Scene.At(5) };
        var request = new SearchRequest { Actor = scene.Actor, Text = "cat", Filter = filter, Mode = SearchMode.Lexical };
        Assert.Equal(["now"], (await scene.Calls.Search.SearchAsync(request)).Hits.Select(hit => hit.Record.RecordId));
    }

    public static async Task GetIndexStatus(Scene scene)
    {
        await scene.AddAsync(Scene.Fact("m1", "A cat"));
        var status = await scene.Calls.Search.GetIndexStatusAsync(new GetIndexStatusRequest { SaveId = scene.Save.Id });
        Assert.Equal(1, status.Total);
    }

    public static async Task RebuildIndex(Scene scene)
    {
        await scene.AddAsync(Scene.Fact("m1", "A cat"));
        using var rebuild = scene.Calls.Search.RebuildIndex(new RebuildIndexRequest { SaveId = scene.Save.Id, Terms = true });
        Assert.Equal(RebuildPhase.Done, (await Scene.AllAsync(rebuild.ResponseStream))[^1].Phase);
    }
}
