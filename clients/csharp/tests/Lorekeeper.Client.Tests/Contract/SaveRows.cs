using System.IO;
using System.Linq;
using System.Threading.Tasks;
using Google.Protobuf;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests.Contract;

public static class SaveRows
{
    public static async Task ListSaves(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        Assert.Equal(1, (await scene.Client.SavesAsync()).Single(save => save.SaveId == scene.Save.Id).Actors);
    }

    public static async Task GetSaveSettings(Scene scene)
    {
        var settings = await scene.Calls.Saves.GetSaveSettingsAsync(new GetSaveSettingsRequest { SaveId = scene.Save.Id });
        Assert.Empty(settings.Settings.Name);
    }

    public static async Task PutSaveSettings(Scene scene)
    {
        var settings = new SaveSettings { Name = "Ada's world" };
        await scene.Calls.Saves.PutSaveSettingsAsync(new PutSaveSettingsRequest { SaveId = scene.Save.Id, Settings = settings });
        Assert.Equal("Ada's world", (await scene.Client.SavesAsync()).Single(save => save.SaveId == scene.Save.Id).Name);
    }

    public static async Task CreateCheckpoint(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        var request = new CreateCheckpointRequest { SaveId = scene.Save.Id, Name = "before the gate", Moment = Scene.At(100) };
        var kept = (await scene.Calls.Saves.CreateCheckpointAsync(request)).Checkpoint;
        Assert.Equal(("before the gate", 100, 1), (kept.Name, kept.Moment.Tick, kept.Actors));
    }

    public static async Task ListCheckpoints(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        await scene.CheckpointAsync("first");
        await scene.CheckpointAsync("second");
        var listed = await scene.Calls.Saves.ListCheckpointsAsync(new ListCheckpointsRequest { SaveId = scene.Save.Id });
        Assert.Equal(["second", "first"], listed.Checkpoints.Select(one => one.Name));
    }

    public static async Task RestoreCheckpoint(Scene scene)
    {
        await scene.AddAsync(Scene.Fact("m1", "At tick 100", tick: 100));
        var kept = await scene.CheckpointAsync("at 100");
        await scene.AddAsync(Scene.Fact("m2", "At tick 200", tick: 200));
        var request = new RestoreCheckpointRequest { SaveId = scene.Save.Id, CheckpointId = kept.CheckpointId };
        await scene.Calls.Saves.RestoreCheckpointAsync(request);
        var listed = await scene.Calls.Memory.ListRecordsAsync(new ListRecordsRequest { Actor = scene.Actor });
        Assert.Equal(["m1"], listed.Records.Select(record => record.RecordId));
    }

    public static async Task DeleteCheckpoint(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        var kept = await scene.CheckpointAsync("first");
        var request = new DeleteCheckpointRequest { SaveId = scene.Save.Id, CheckpointId = kept.CheckpointId };
        Assert.True((await scene.Calls.Saves.DeleteCheckpointAsync(request)).Existed);
        Assert.Empty(await scene.Save.CheckpointsAsync());
    }

    public static async Task ForkSave(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        var request = new ForkSaveRequest { SaveId = scene.Save.Id, NewSaveId = scene.Save.Id + "-fork" };
        var fork = (await scene.Calls.Saves.ForkSaveAsync(request)).Info;
        Assert.Equal((request.NewSaveId, scene.Save.Id), (fork.SaveId, fork.ForkedFrom));
    }

    public static async Task ExportSave(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        using var call = scene.Calls.Saves.ExportSave(new ExportSaveRequest { SaveId = scene.Save.Id });
        var parts = await Scene.AllAsync(call.ResponseStream);
        Assert.Equal(1, parts[^1].Footer.Actors);
        Assert.Equal(parts[^1].Footer.Bytes, parts.Sum(part => part.Chunk.Length));
    }

    public static async Task ImportSave(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        using var file = new MemoryStream();
        await scene.Save.ExportAsync(file);
        using var call = scene.Calls.Saves.ImportSave();
        await call.RequestStream.WriteAsync(new ImportSaveRequest { Header = new ImportHeader { SaveId = scene.Save.Id + "-in" } });
        await call.RequestStream.WriteAsync(new ImportSaveRequest { Chunk = ByteString.CopyFrom(file.ToArray()) });
        await call.RequestStream.CompleteAsync();
        Assert.Equal(1, (await call.ResponseAsync).Info.Actors);
    }

    public static async Task EraseSave(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("one");
        var request = new EraseSaveRequest { SaveId = scene.Save.Id };
        Assert.True((await scene.Calls.Saves.EraseSaveAsync(request)).Existed);
        Assert.DoesNotContain(scene.Save.Id, (await scene.Client.SavesAsync()).Select(save => save.SaveId));
    }

    public static async Task ErasePlayer(Scene scene)
    {
        var (ada, ben) = (scene.Save.Npc("mira", player: "ada"), scene.Save.Npc("mira", player: "ben"));
        await ada.Memory.WriteAsync("Ada is kind.");
        await ben.Memory.WriteAsync("Ben is late.");
        var request = new ErasePlayerRequest { PlayerId = "ada", SaveIds = { scene.Save.Id } };
        Assert.Equal(1, (await scene.Calls.Saves.ErasePlayerAsync(request)).Erased.Actors);
        Assert.Equal(("", "Ben is late."), ((await ada.Memory.ReadAsync()).Text, (await ben.Memory.ReadAsync()).Text));
    }
}
