using System.Linq;
using System.Threading.Tasks;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests.Contract;

public static class MemoryRows
{
    public static async Task GetDocument(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("Known learner fact");
        var document = await scene.Calls.Memory.GetDocumentAsync(new GetDocumentRequest { Actor = scene.Actor });
        Assert.Equal(("Known learner fact", 18, LoadStatus.Loaded), (document.Text, document.Length, document.Status));
    }

    public static async Task EditDocument(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("Quest: old\nQuest: old");
        var replace = new Edit { StrReplace = new StrReplace { OldText = "old", NewText = "new" } };
        await scene.Calls.Memory.EditDocumentAsync(new EditDocumentRequest { Actor = scene.Actor, Edits = { replace } });
        Assert.Equal("Quest: new\nQuest: old", (await scene.Mira.Memory.ReadAsync()).Text);
    }

    public static async Task ListDocumentVersions(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("Test memory content");
        await scene.Mira.Memory.ClearAsync();
        var request = new ListDocumentVersionsRequest { Actor = scene.Actor, IncludeContent = true };
        var versions = (await scene.Calls.Memory.ListDocumentVersionsAsync(request)).Versions;
        Assert.Equal(["Test memory content", ""], versions.Select(version => version.Content));
    }

    public static async Task RevertDocument(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        await scene.Mira.Memory.WriteAsync("two");
        var answer = await scene.Calls.Memory.RevertDocumentAsync(new RevertDocumentRequest { Actor = scene.Actor, Version = 1 });
        Assert.Equal((3, "one"), (answer.Version, (await scene.Mira.Memory.ReadAsync()).Text));
    }

    public static async Task ResetDocument(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        Assert.True((await scene.Calls.Memory.ResetDocumentAsync(new ResetDocumentRequest { Actor = scene.Actor })).Existed);
        Assert.Equal(0, (await scene.Mira.Memory.ReadAsync()).Version);
    }

    public static async Task ListTools(Scene scene)
    {
        var tools = await scene.Calls.Memory.ListToolsAsync(new ListToolsRequest { Actor = scene.Actor });
        Assert.Contains("memory", tools.Tools.Select(tool => tool.Name));
    }

    public static async Task CallTool(Scene scene)
    {
        const string arguments = """{"action":"write","content":"Test memory content"}""";
        var request = new CallToolRequest { Actor = scene.Actor, Name = "memory", ArgumentsJson = arguments };
        Assert.True((await scene.Calls.Memory.CallToolAsync(request)).Succeeded);
        Assert.Equal("Test memory content", (await scene.Mira.Memory.ReadAsync()).Text);
    }

    public static async Task AddRecords(Scene scene)
    {
        var request = new AddRecordsRequest { Actor = scene.Actor, Records = { Scene.Fact("m1", "A cat") } };
        var outcomes = new[]
        {
            (await scene.Calls.Memory.AddRecordsAsync(request)).Records.Single().Outcome,
            (await scene.Calls.Memory.AddRecordsAsync(request)).Records.Single().Outcome,
        };
        Assert.Equal([AddOutcome.Created, AddOutcome.Unchanged], outcomes);
    }

    public static async Task GetRecord(Scene scene)
    {
        var kept = Scene.Fact("m1", "Ada is a friend", tick: 8);
        kept.ExpiresAt = Scene.At(20);
        kept.Tags.Add("friend");
        kept.Metadata.Add("mood", "glad");
        await scene.AddAsync(kept);
        var request = new GetRecordRequest { Actor = scene.Actor, RecordId = "m1" };
        var record = (await scene.Calls.Memory.GetRecordAsync(request)).Record;
        Assert.Equal((20, "friend", "glad"), (record.ExpiresAt.Tick, record.Tags.Single(), record.Metadata["mood"]));
    }

    public static async Task ListRecords(Scene scene)
    {
        var friend = Scene.Fact("m1", "Ada is a friend", tick: 12);
        friend.Importance = 0.63;
        friend.Tags.Add("friend");
        friend.PayloadJson = """{"affinity":0.75}""";
        await scene.AddAsync(friend, Scene.Fact("m2", "Later", tick: 30));
        var filter = new RecordFilter { Tags = { "friend" }, AtOrBefore = Scene.At(20) };
        var listed = await scene.Calls.Memory.ListRecordsAsync(new ListRecordsRequest { Actor = scene.Actor, Filter = filter });
        var record = listed.Records.Single();
        Assert.Equal(("m1", 0.63, """{"affinity":0.75}"""), (record.RecordId, record.Importance, record.PayloadJson));
    }

    public static async Task SupersedeRecord(Scene scene)
    {
        await scene.AddAsync(Scene.Fact("m1", "Ada lives in Riga"));
        await scene.Calls.Memory.SupersedeRecordAsync(new SupersedeRecordRequest
        {
            Actor = scene.Actor,
            RecordId = "m1",
            Replacement = Scene.Fact("m2", "Ada lives in Oslo", tick: 5),
        });
        var listed = await scene.Calls.Memory.ListRecordsAsync(new ListRecordsRequest { Actor = scene.Actor });
        Assert.Equal(["m2"], listed.Records.Select(record => record.RecordId));
    }

    public static async Task ForgetRecords(Scene scene)
    {
        await scene.AddAsync(Scene.Fact("m1", "A cat"), Scene.Fact("m2", "A dog"));
        var request = new ForgetRecordsRequest { Actor = scene.Actor, RecordIds = { "m1" } };
        Assert.Equal(1, (await scene.Calls.Memory.ForgetRecordsAsync(request)).Forgotten);
    }

    public static async Task ShareRecord(Scene scene)
    {
        await scene.AddAsync(Scene.Fact("m1", "The gate burns"));
        var orin = scene.Save.Npc("orin");
        var share = new Share { Recipient = orin.Actor, Kind = ShareKind.Hearsay, Moment = Scene.At(4), ToldBy = scene.Actor };
        await scene.Calls.Memory.ShareRecordAsync(
            new ShareRecordRequest { Actor = scene.Actor, RecordId = "m1", Shares = { share } });
        Assert.Equal("The gate burns", (await orin.Records.SearchAsync("gate", 5)).Found.Single().Text);
    }

    public static async Task PutGroups(Scene scene)
    {
        var (guard, thief) = (scene.Save.Npc("guard"), scene.Save.Npc("thief"));
        await GuardsAsync(scene, guard);
        var secret = Scene.Fact("m1", "The password is heron");
        secret.Audience.Add("faction:guards");
        await scene.AddAsync(secret);
        Assert.Single((await guard.Records.SearchAsync("password", 5)).Found);
        Assert.Empty((await thief.Records.SearchAsync("password", 5)).Found);
    }

    public static async Task ListGroups(Scene scene)
    {
        await GuardsAsync(scene, scene.Mira);
        var request = new ListGroupsRequest { SaveId = scene.Save.Id, Member = scene.Actor };
        Assert.Equal("faction:guards", (await scene.Calls.Memory.ListGroupsAsync(request)).Groups.Single().GroupId);
    }

    public static async Task PutRetention(Scene scene)
    {
        await scene.AddAsync(Scene.Fact("m1", "Old", tick: 1), Scene.Fact("m2", "New", tick: 2));
        var request = new PutRetentionRequest
        {
            SaveId = scene.Save.Id,
            Owner = scene.Actor,
            Policy = new RetentionPolicy { MaxRecords = 1 },
        };
        Assert.Equal(1, (await scene.Calls.Memory.PutRetentionAsync(request)).Dropped);
    }

    public static async Task GetRetention(Scene scene)
    {
        var policy = new RetentionPolicy { MaxRecords = 7 };
        await scene.Calls.Memory.PutRetentionAsync(new PutRetentionRequest { SaveId = scene.Save.Id, Policy = policy });
        var kept = await scene.Calls.Memory.GetRetentionAsync(new GetRetentionRequest { SaveId = scene.Save.Id });
        Assert.Equal(7, kept.Policy.MaxRecords);
    }

    public static async Task ListActors(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        var actors = (await scene.Calls.Memory.ListActorsAsync(new ListActorsRequest { SaveId = scene.Save.Id })).Actors;
        Assert.Equal(("mira", 3), (actors.Single().Actor.ActorId, actors.Single().DocumentLength));
    }

    public static async Task EraseActor(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        var answer = await scene.Calls.Memory.EraseActorAsync(new EraseActorRequest { Actor = scene.Actor });
        Assert.Equal((true, 1), (answer.Existed, answer.Erased.Documents));
    }

    private static async Task GuardsAsync(Scene scene, Npc member)
    {
        var guards = new Group { GroupId = "faction:guards", Members = { member.Actor } };
        await scene.Calls.Memory.PutGroupsAsync(new PutGroupsRequest { SaveId = scene.Save.Id, Groups = { guards } });
    }
}
