using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using Godot;
using Lorekeeper.GodotAddon;
using Xunit;
using Dictionary = Godot.Collections.Dictionary;

namespace Lorekeeper.Tests;

/// <summary>
/// The Godot add-on against stand-ins of the engine's types and a real daemon. The engine itself was not here.
/// </summary>
public sealed class GodotTests(DaemonFixture daemon) : IAsyncLifetime
{
    private readonly LorekeeperNode lorekeeper = new();
    private readonly LorekeeperNpc mira = new() { ActorId = "mira", RoleId = "GodotTest" };

    public async ValueTask InitializeAsync()
    {
        ProjectSettings.Values["lorekeeper/data_folder"] = Places.NewDataFolder();
        ProjectSettings.Values["lorekeeper/command"] = string.Join(' ', Places.DaemonCommand);
        Node.Tree["/root/Lorekeeper"] = lorekeeper;
        lorekeeper._EnterTree();
        mira._EnterTree();
        await SignalAsync(lorekeeper, "Started");
    }

    public ValueTask DisposeAsync()
    {
        mira._ExitTree();
        lorekeeper._ExitTree();
        return default;
    }

    [Fact]
    public async Task An_npc_remembers_and_tells_it_by_a_signal()
    {
        mira.AppendMemory("The player spared the wolf.");
        Assert.Equal(["The player spared the wolf."], await SignalAsync(mira, "MemoryRead"));
    }

    [Fact]
    public async Task A_failure_is_a_signal_with_a_reason_and_what_to_do()
    {
        mira.AppendMemory("");
        var failed = await SignalAsync(mira, "Failed");
        Assert.Equal("CONTENT_REQUIRED", failed[0]);
    }

    [Fact]
    public async Task Leaving_the_tree_ends_the_daemon()
    {
        var process = (int)lorekeeper.DaemonProcessId;
        lorekeeper._ExitTree();
        await Eventually.True(() => Eventually.IsGone(process), TimeSpan.FromSeconds(30), "The end of the daemon");
        Assert.False(lorekeeper.IsRunning);
    }

    [Fact]
    public async Task A_role_with_a_wrong_key_fails_by_a_signal_that_names_the_key()
    {
        lorekeeper.PutRole(new Dictionary { ["role_id"] = "GodotTest", ["sytem_prompt"] = "You sell lamps." });
        Assert.Contains("sytem_prompt", (string)(await SignalAsync(lorekeeper, "Failed"))[1]!);
    }

    [Fact]
    public async Task An_npc_that_leaves_the_tree_and_comes_back_speaks_again()
    {
        daemon.Needs("turns");
        await PutRoleAsync("Hello.");
        mira._ExitTree();
        Assert.Throws<InvalidOperationException>(() => mira.Say("Hello?"));
        mira._EnterTree();
        mira.Say("Hello?");
        Assert.Equal(["Hello."], await SignalAsync(mira, "Completed"));
    }

    [Fact]
    public async Task An_npc_answers_by_signals_in_order()
    {
        daemon.Needs("turns");
        await PutRoleAsync("I remember the wolf.");
        mira.Say("Do you remember?");
        Assert.Equal(["I remember the wolf."], await SignalAsync(mira, "Completed"));
        var tokens = mira.Emitted.Where(one => one.Signal == "TokenReceived").Select(one => one.Arguments[0]);
        Assert.Equal("I remember the wolf.", string.Concat(tokens));
        Assert.Equal("Completed", mira.Emitted[^1].Signal);
    }

    [Fact]
    public async Task A_model_calls_a_tool_that_a_script_answers()
    {
        daemon.Needs("turns");
        using var model = new FakeModel(FakeModel.Call("open_gate", """{"gate":"north"}"""), FakeModel.Say("Open."));
        lorekeeper.PutBackend(new Dictionary { ["backend_id"] = "fake", ["base_url"] = model.Address, ["model"] = "fake" });
        await PutRoleAsync("unused");
        mira.BackendId = "fake";
        mira.OfferTool("open_gate", "Opens a gate.", new Dictionary { ["gate"] = "Which gate." });
        mira.Say("Open the gate!");
        var called = await SignalAsync(mira, "ToolCalled");
        Assert.Equal("north", ((Dictionary)called[2]!)["gate"].AsString());
        mira.AnswerTool((long)called[0]!, "The north gate is open.");
        Assert.Equal(["Open."], await SignalAsync(mira, "Completed"));
    }

    [Fact]
    public async Task Saving_and_loading_brings_back_what_was_known()
    {
        daemon.Needs("saves");
        mira.AppendMemory("before");
        await SignalAsync(mira, "MemoryRead");
        lorekeeper.SaveGame("before the gate");
        var kept = (string)(await SignalAsync(lorekeeper, "Saved"))[0]!;
        mira.AppendMemory("after");
        await SignalAsync(mira, "MemoryRead");
        lorekeeper.LoadGame(kept);
        await SignalAsync(lorekeeper, "Loaded");
        mira.ReadMemory();
        Assert.Equal(["before"], await SignalAsync(mira, "MemoryRead"));
    }

    [Fact]
    public async Task A_search_tells_what_it_found_as_dictionaries()
    {
        daemon.Needs("search");
        mira.Remember("The wolf at the orchard.", 5);
        await SignalAsync(mira, "Remembered");
        mira.Search("wolf", 9);
        var found = (List<Variant>)(await SignalAsync(mira, "Recalled"))[0]!;
        Assert.Equal("The wolf at the orchard.", found.Single().AsGodotDictionary()["text"].AsString());
    }

    private async Task PutRoleAsync(string line)
    {
        var lines = new Godot.Collections.Array { line };
        lorekeeper.PutRole(new Dictionary { ["role_id"] = "GodotTest", ["backend_id"] = "offline", ["offline_lines"] = lines });
        await SignalAsync(lorekeeper, "RoleSet");
    }

    // Plays frames until the signal comes that was not there before.
    private async Task<object?[]> SignalAsync(GodotObject from, string signal)
    {
        var before = from.Emitted.Count(one => one.Signal == signal);
        await Eventually.True(
            () =>
            {
                lorekeeper._Process(0.016);
                return from.Emitted.Count(one => one.Signal == signal) > before;
            },
            TimeSpan.FromSeconds(60),
            signal);
        return from.Emitted.Last(one => one.Signal == signal).Arguments;
    }
}
