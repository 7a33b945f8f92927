using System;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Xunit;

namespace Lorekeeper.Tests;

public sealed class SaveTests(DaemonFixture daemon)
{
    [Fact]
    public async Task Loading_brings_back_what_was_known_when_it_was_saved()
    {
        daemon.Needs("saves");
        var save = daemon.NewSave();
        var memory = save.Npc("mira").Memory;
        await memory.WriteAsync("before");
        var kept = await save.CheckpointAsync("before the gate", 5_000);
        await memory.WriteAsync("after");
        var safety = await save.RestoreAsync(kept.Id);
        Assert.Equal("before", (await memory.ReadAsync()).Text);
        await save.RestoreAsync(safety.Id);
        Assert.Equal("after", (await memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task Checkpoints_are_listed_newest_first()
    {
        daemon.Needs("saves");
        var save = daemon.NewSave();
        await save.Npc("mira").Memory.WriteAsync("one");
        await save.CheckpointAsync("first", 1);
        await save.CheckpointAsync("second", 2);
        var listed = await save.CheckpointsAsync();
        Assert.Equal([("second", new GameTime(2)), ("first", new GameTime(1))], listed.Select(one => (one.Name, one.When!.Value)));
    }

    [Fact]
    public async Task A_deleted_checkpoint_is_gone()
    {
        daemon.Needs("saves");
        var save = daemon.NewSave();
        await save.Npc("mira").Memory.WriteAsync("one");
        var kept = await save.CheckpointAsync("first", 1);
        Assert.True(await save.DeleteCheckpointAsync(kept.Id));
        Assert.Empty(await save.CheckpointsAsync());
        Assert.False(await save.DeleteCheckpointAsync(kept.Id));
    }

    [Fact]
    public async Task A_transfer_is_cancelled_as_a_task_is()
    {
        daemon.Needs("saves");
        using var file = new MemoryStream(new byte[100]);
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => daemon.NewSave().ImportAsync(file, cancellation: new CancellationToken(true)));
    }

    [Fact]
    public async Task A_fork_goes_its_own_way()
    {
        daemon.Needs("saves");
        var save = daemon.NewSave();
        await save.Npc("mira").Memory.WriteAsync("one");
        var fork = await save.ForkAsync(save.Id + "-fork");
        await fork.Npc("mira").Memory.WriteAsync("two");
        Assert.Equal("one", (await save.Npc("mira").Memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task A_save_is_carried_as_a_file()
    {
        daemon.Needs("saves");
        var save = daemon.NewSave();
        await save.Npc("mira").Memory.WriteAsync("one");
        using var file = new MemoryStream();
        await save.ExportAsync(file);
        file.Position = 0;
        var other = daemon.Client.Save(save.Id + "-import");
        await other.ImportAsync(file);
        Assert.Equal("one", (await other.Npc("mira").Memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task A_file_that_is_no_save_is_refused_with_a_reason()
    {
        daemon.Needs("saves");
        using var file = new MemoryStream(new byte[1_000_000]);
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => daemon.NewSave().ImportAsync(file));
        Assert.NotEmpty(error.Reason);
    }

    [Fact]
    public async Task An_erased_save_is_gone()
    {
        daemon.Needs("saves");
        var save = daemon.NewSave();
        await save.Npc("mira").Memory.WriteAsync("one");
        Assert.Contains(save.Id, (await daemon.Client.SavesAsync()).Select(one => one.SaveId));
        Assert.True(await save.EraseAsync());
        Assert.DoesNotContain(save.Id, (await daemon.Client.SavesAsync()).Select(one => one.SaveId));
    }
}
