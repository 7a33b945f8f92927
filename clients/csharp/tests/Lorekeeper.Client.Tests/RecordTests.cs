using System.Linq;
using System.Threading.Tasks;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests;

public sealed class RecordTests(DaemonFixture daemon)
{
    [Fact]
    public async Task What_happened_is_found_by_its_words()
    {
        daemon.Needs("search");
        var mira = daemon.NewSave().Npc("mira");
        var id = await mira.Records.AddAsync(new Remembrance("The player spared the wolf at the old orchard.", 4_200));
        await mira.Records.AddAsync(new Remembrance("Saffron is dear this year.", 4_300));
        var found = (await mira.Records.SearchAsync("wolf", 5_000)).Found;
        Assert.Equal((id, new GameTime(4_200)), (found.Single().Id, found.Single().When));
    }

    [Fact]
    public async Task What_happens_later_is_not_found()
    {
        daemon.Needs("search");
        var mira = daemon.NewSave().Npc("mira");
        await mira.Records.AddAsync([new Remembrance("A feline now", 2), new Remembrance("A feline later", 8)]);
        Assert.Equal("A feline now", (await mira.Records.SearchAsync("feline", 5)).Found.Single().Text);
    }

    [Fact]
    public async Task Tags_importance_and_payload_come_back_as_they_were()
    {
        daemon.Needs("search");
        var mira = daemon.NewSave().Npc("mira");
        var memory = new Remembrance("Ada is a friend.", 12)
        {
            Importance = 0.63,
            Tags = ["friend"],
            Kind = RecordKind.Relationship,
            PayloadJson = """{"affinity":0.75}""",
        };
        await mira.Records.AddAsync(memory);
        var result = await mira.Records.SearchAsync("", 20, configure: search => search.Filter.Tags.Add("friend"));
        var record = result.Found.Single().Hit.Record;
        Assert.Equal((0.63, """{"affinity":0.75}""", RecordKind.Relationship), (record.Importance, record.PayloadJson, record.Kind));
    }

    [Fact]
    public async Task The_same_record_again_changes_nothing_and_another_under_its_id_is_refused()
    {
        daemon.Needs("records");
        var mira = daemon.NewSave().Npc("mira");
        var memory = new Remembrance("one", 1) { Id = "wolf" };
        await mira.Records.AddAsync(memory);
        await mira.Records.AddAsync(memory);
        var other = memory with { Text = "another" };
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => mira.Records.AddAsync(other));
        Assert.Equal(Grpc.Core.StatusCode.AlreadyExists, error.Code);
    }

    [Fact]
    public async Task A_forgotten_record_is_not_found()
    {
        daemon.Needs("search");
        var mira = daemon.NewSave().Npc("mira");
        var id = await mira.Records.AddAsync(new Remembrance("The wolf", 1));
        Assert.Equal(1, await mira.Records.ForgetAsync([id, "unknown"]));
        Assert.Empty((await mira.Records.SearchAsync("wolf", 5)).Found);
    }

    [Fact]
    public async Task What_is_addressed_to_everybody_is_recalled_by_another()
    {
        daemon.Needs("search");
        var save = daemon.NewSave();
        await save.Npc("mira").Records.AddAsync(new Remembrance("The gate burns!", 1) { Audience = ["*"] });
        var found = (await save.Npc("orin").Records.SearchAsync("gate", 5)).Found.Single();
        Assert.Equal(HitAccess.Group, found.Hit.Access);
    }

    [Fact]
    public async Task A_search_without_a_model_says_that_it_is_less_than_it_could_be()
    {
        daemon.Needs("search");
        var mira = daemon.NewSave().Npc("mira");
        await mira.Records.AddAsync(new Remembrance("The wolf", 1));
        var result = await mira.Records.SearchAsync("wolf", 5);
        Assert.True(result.Degraded != DegradedReason.Unspecified || result.Found.Single().Hit.Channels.Count > 1);
    }

    [Fact]
    public async Task An_index_can_be_built_again_and_tells_how_far_it_is()
    {
        daemon.Needs("search");
        var save = daemon.NewSave();
        await save.Npc("mira").Records.AddAsync(new Remembrance("The wolf", 1));
        using var rebuild = daemon.Client.Calls.Search.RebuildIndex(new RebuildIndexRequest { SaveId = save.Id, Terms = true });
        var last = RebuildPhase.Unspecified;
        while (await rebuild.ResponseStream.MoveNext(default))
        {
            last = rebuild.ResponseStream.Current.Phase;
        }

        Assert.Equal(RebuildPhase.Done, last);
    }
}
