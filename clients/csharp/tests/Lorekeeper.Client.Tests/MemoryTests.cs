using System.Linq;
using System.Threading.Tasks;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests;

public sealed class MemoryTests(DaemonFixture daemon)
{
    [Fact]
    public async Task An_npc_that_was_told_something_knows_it()
    {
        var mira = daemon.NewSave().Npc("mira", "Merchant");
        await mira.Memory.AppendAsync("The player spared the wolf.");
        Assert.Equal(new MemoryText("The player spared the wolf.", 1), await mira.Memory.ReadAsync());
    }

    [Fact]
    public async Task An_npc_that_was_told_nothing_knows_nothing() =>
        Assert.Equal(new MemoryText("", 0), await daemon.NewSave().Npc("mira").Memory.ReadAsync());

    [Fact]
    public async Task Telling_the_same_line_twice_changes_nothing()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        await memory.AppendAsync("Owes me 12 silver.");
        Assert.Equal(new EditResult(1, false), await memory.AppendAsync("Owes me 12 silver."));
    }

    [Fact]
    public async Task Replacing_changes_the_first_occurrence()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        await memory.WriteAsync("Quest: old\nQuest: old");
        await memory.ReplaceAsync("old", "new");
        Assert.Equal("Quest: new\nQuest: old", (await memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task Deleting_removes_the_first_occurrence()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        await memory.WriteAsync("Keep\nDelete me\nKeep\nDelete me");
        await memory.EditAsync([MemoryEdit.Delete("Delete me\n")]);
        Assert.Equal("Keep\nKeep\nDelete me", (await memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task Renaming_changes_the_first_label()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        await memory.WriteAsync("Profile: calm\nProfile: duplicate");
        await memory.EditAsync([MemoryEdit.Rename("Profile", "Identity")]);
        Assert.Equal("Identity: calm\nProfile: duplicate", (await memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task Inserting_takes_a_line_or_an_anchor()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        await memory.WriteAsync("b\nd");
        await memory.EditAsync([MemoryEdit.InsertAtLine("a", 1), MemoryEdit.InsertAfter("c", "b")]);
        Assert.Equal("a\nb\nc\nd", (await memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task A_batch_with_a_bad_edit_changes_nothing_and_tells_the_nearest_lines()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        await memory.WriteAsync("Owes me 12 silver");
        var edits = new[] { MemoryEdit.Append("new"), MemoryEdit.Replace("Owes me 12 gold", "paid") };
        var error = await Assert.ThrowsAsync<EditFailedException>(() => memory.EditAsync(edits));
        Assert.Equal((1, "NOT_FOUND", "Owes me 12 silver"), (error.EditIndex, error.Reason, error.NearestLines.Single()));
        Assert.Equal("Owes me 12 silver", (await memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task An_edit_of_an_old_version_is_refused()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        await memory.WriteAsync("one");
        await memory.WriteAsync("two");
        var error = await Assert.ThrowsAsync<VersionConflictException>(() => memory.EditAsync([MemoryEdit.Write("three")], 1));
        Assert.Equal(("VERSION_MISMATCH", 2), (error.Reason, error.CurrentVersion));
    }

    [Fact]
    public async Task Versions_are_listed_and_one_can_be_made_current_again()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        await memory.WriteAsync("one");
        await memory.ClearAsync();
        Assert.Equal(["Write", "Clear"], (await memory.VersionsAsync()).Select(version => version.Action));
        Assert.Equal(new EditResult(3, true), await memory.RevertAsync(1));
        Assert.Equal("one", (await memory.ReadAsync(3)).Text);
    }

    [Fact]
    public async Task Versions_come_in_pages_and_are_all_listed()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        for (var version = 1; version <= 12; version++)
        {
            await memory.WriteAsync($"version {version}");
        }

        Assert.Equal(Enumerable.Range(1, 12), (await memory.VersionsAsync()).Select(version => version.Version));
    }

    [Fact]
    public async Task Resetting_deletes_text_and_versions()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        await memory.WriteAsync("one");
        Assert.True(await memory.ResetAsync());
        Assert.Empty(await memory.VersionsAsync());
        Assert.False(await memory.ResetAsync());
    }

    [Fact]
    public async Task Each_part_of_an_address_has_a_memory_of_its_own()
    {
        var save = daemon.NewSave();
        await save.Npc("mira", player: "ada").Memory.WriteAsync("Ada is kind.");
        Assert.Equal("", (await save.Npc("mira", player: "ben").Memory.ReadAsync()).Text);
        Assert.Equal("", (await save.Npc("mira", player: "ada", topic: "cooking").Memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task Every_script_and_symbol_comes_back_as_it_was()
    {
        const string text = "Željko 田中　テスト 🎮 מירה ‏\u0301 \"quoted\" \\ back";
        var mira = daemon.NewSave().Npc("мира 🐺", "店主");
        await mira.Memory.WriteAsync(text);
        Assert.Equal(text, (await mira.Memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task A_text_at_its_limit_is_kept_and_a_longer_one_is_refused_with_the_limit()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        var largest = string.Concat(Enumerable.Repeat("記", 200_000));
        await memory.WriteAsync(largest);
        Assert.Equal(largest, (await memory.ReadAsync()).Text);
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => memory.WriteAsync(largest + "憶"));
        Assert.Equal("memory.max_document_chars", error.Details["limit"]);
    }

    [Fact]
    public async Task A_wrong_field_is_named()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => memory.AppendAsync(""));
        Assert.Equal(("CONTENT_REQUIRED", "edits[0].append.content"), (error.Reason, error.Field));
    }

    [Fact]
    public async Task A_hundred_npcs_remember_at_once()
    {
        var save = daemon.NewSave();
        var npcs = Enumerable.Range(0, 100).Select(number => save.Npc($"npc-{number}")).ToList();
        await Task.WhenAll(npcs.Select((npc, number) => npc.Memory.WriteAsync($"I am {number}.")));
        var texts = await Task.WhenAll(npcs.Select(async npc => (await npc.Memory.ReadAsync()).Text));
        Assert.Equal(Enumerable.Range(0, 100).Select(number => $"I am {number}."), texts);
    }

    [Fact]
    public async Task Concurrent_edits_of_one_npc_all_survive()
    {
        var memory = daemon.NewSave().Npc("mira").Memory;
        await Task.WhenAll(Enumerable.Range(0, 32).Select(number => memory.AppendAsync($"fact_{number:00}")));
        var lines = (await memory.ReadAsync()).Text.Split('\n').Order();
        Assert.Equal(Enumerable.Range(0, 32).Select(number => $"fact_{number:00}"), lines);
    }

    [Fact]
    public async Task An_npc_that_is_erased_is_forgotten()
    {
        var mira = daemon.NewSave().Npc("mira");
        await mira.Memory.WriteAsync("one");
        Assert.True(await mira.EraseAsync());
        Assert.Equal("", (await mira.Memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task A_model_reads_and_edits_by_its_tool()
    {
        var mira = daemon.NewSave().Npc("mira", "Merchant");
        var tools = await daemon.Client.Calls.Memory.ListToolsAsync(new ListToolsRequest { Actor = mira.Actor });
        Assert.Contains("memory", tools.Tools.Select(tool => tool.Name));
        var answer = await daemon.Client.Calls.Memory.CallToolAsync(new CallToolRequest
        {
            Actor = mira.Actor,
            Name = "memory",
            ArgumentsJson = """{"action":"append","content":"Ada likes saffron."}""",
        });
        Assert.True(answer.Succeeded);
        Assert.Equal("Ada likes saffron.", (await mira.Memory.ReadAsync()).Text);
    }
}
