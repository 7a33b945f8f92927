using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests;

public sealed class TalkTests(DaemonFixture daemon)
{
    private static readonly NpcTool OpenGate = NpcTool.Create(
        "open_gate", "Opens a gate.", ToolParameter.Text("gate", "Which gate."), gate => Task.FromResult($"The {gate} gate is open."));

    [Fact]
    public async Task What_was_said_is_read_again_oldest_first()
    {
        daemon.Needs("history");
        var mira = daemon.NewSave().Npc("mira");
        await mira.HeardAsync([Utterance.Player("Good morning.", 7), Utterance.Npc("A lamp for the road?")]);
        Assert.Equal(
            [("user", "Good morning."), ("assistant", "A lamp for the road?")],
            (await mira.HistoryAsync()).Select(one => (one.Role, one.Text)));
    }

    [Fact]
    public async Task A_cleared_history_leaves_memory_as_it_was()
    {
        daemon.Needs("history");
        var mira = daemon.NewSave().Npc("mira");
        await mira.Memory.WriteAsync("one");
        await mira.HeardAsync([Utterance.Player("Good morning.")]);
        await mira.ClearHistoryAsync();
        Assert.Empty(await mira.HistoryAsync());
        Assert.Equal("one", (await mira.Memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task A_role_behaves_as_it_was_put()
    {
        daemon.Needs("history");
        var id = "role-" + Guid.NewGuid();
        await daemon.Client.PutRoleAsync(new Role { RoleId = id, SystemPrompt = "You sell lamps." });
        var role = await daemon.Client.Calls.Chat.GetRoleAsync(new GetRoleRequest { RoleId = id });
        Assert.Equal("You sell lamps.", role.Role.Effective.SystemPrompt);
    }

    [Fact]
    public async Task Tokens_are_counted_and_a_summary_is_kept()
    {
        daemon.Needs("compaction");
        var calls = daemon.Client.Calls.Compaction;
        var actor = daemon.NewSave().Npc("mira").Actor;
        Assert.Equal(2, (await calls.CountTokensAsync(new CountTokensRequest { Texts = { "Hello!" }, Counter = TokenCounter.Heuristic })).Total.Tokens);
        await calls.PutSummaryAsync(new PutSummaryRequest { Actor = actor, Text = "They met." });
        Assert.Equal("They met.", (await calls.GetSummaryAsync(new GetSummaryRequest { Actor = actor })).Summary.Text);
    }

    [Fact]
    public async Task Models_are_listed()
    {
        daemon.Needs("embedding");
        Assert.NotNull(await daemon.Client.Calls.Embedding.ListModelsAsync(new ListModelsRequest()));
    }

    [Fact]
    public async Task Embedding_without_a_model_says_what_to_do()
    {
        daemon.Needs("embedding");
        var models = await daemon.Client.Calls.Embedding.ListModelsAsync(new ListModelsRequest());
        Assert.SkipWhen(models.Models.Any(model => model.Selected), "This daemon has a model.");
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => daemon.Client.EmbedAsync(EmbedKind.Query, ["wolf"]));
        Assert.Equal(Grpc.Core.StatusCode.FailedPrecondition, error.Code);
    }

    [Fact]
    public async Task A_reply_streams_and_its_parts_are_the_whole_reply()
    {
        daemon.Needs("turns");
        var mira = await OfflineAsync("I remember the wolf.");
        var parts = await ReadAsync(mira.SayAsync("Do you remember the wolf?"));
        Assert.Equal("I remember the wolf.", string.Concat(parts));
        Assert.Equal(ReplyKind.Started, parts[0].Kind);
        Assert.Equal("I remember the wolf.", parts[^1].Event!.Completed.Text);
    }

    [Fact]
    public async Task A_whole_reply_can_be_asked_for()
    {
        daemon.Needs("turns");
        Assert.Equal("Mind the step.", await (await OfflineAsync("Mind the step.")).AskAsync("Hello"));
    }

    [Fact]
    public async Task A_line_and_its_reply_are_in_the_history()
    {
        daemon.Needs("turns");
        var mira = await OfflineAsync("Mind the step.");
        await mira.AskAsync("Hello");
        Assert.Equal(["Hello", "Mind the step."], (await mira.HistoryAsync()).Select(one => one.Text));
    }

    [Fact]
    public async Task A_turn_that_fails_says_why()
    {
        daemon.Needs("turns");
        var mira = daemon.NewSave().Npc("mira");
        await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => mira.AskAsync(new Line("Hello") { Backend = "unknown" }));
    }

    [Fact]
    public async Task A_model_calls_a_tool_of_the_game_and_says_what_came_of_it()
    {
        daemon.Needs("turns");
        using var model = new FakeModel(FakeModel.Call("open_gate", """{"gate":"north"}"""), FakeModel.Say("It is ", "open."));
        var orin = await WithModelAsync(model);
        await using var talk = await orin.OpenConversationAsync([OpenGate]);
        var parts = await ReadAsync(talk.SayAsync("Open the gate!"));
        Assert.Equal("It is open.", string.Concat(parts));
        Assert.Equal("The north gate is open.", parts.Single(part => part.Kind == ReplyKind.ToolAnswered).Event!.ToolResult.Result);
        Assert.Contains("The north gate is open.", model.Requests.Last());
    }

    [Fact]
    public async Task A_tool_that_throws_is_told_to_the_model_and_the_turn_goes_on()
    {
        daemon.Needs("turns");
        using var model = new FakeModel(FakeModel.Call("open_gate", """{"gate":"north"}"""), FakeModel.Say("It is stuck."));
        var stuck = NpcTool.Create(
            "open_gate", "Opens.", ToolParameter.Text("gate", "Which."), _ => throw new InvalidOperationException("The gate is stuck."));
        await using var talk = await (await WithModelAsync(model)).OpenConversationAsync([stuck]);
        Assert.Equal("It is stuck.", string.Concat(await ReadAsync(talk.SayAsync("Open!"))));
        Assert.Contains("The gate is stuck.", model.Requests.Last());
    }

    [Fact]
    public async Task A_tool_runs_on_the_thread_of_the_game()
    {
        daemon.Needs("turns");
        using var model = new FakeModel(FakeModel.Call("where", "{}"), FakeModel.Say("Here."));
        using var thread = new SingleThread();
        var ran = 0;
        var where = NpcTool.Create("where", "Tells.", () => Task.FromResult($"{ran = Environment.CurrentManagedThreadId}"));
        await thread.Run(() => TalkAsync(model, where));
        Assert.Equal(thread.ThreadId, ran);
    }

    [Fact]
    public async Task A_second_line_goes_on_with_the_conversation()
    {
        daemon.Needs("turns");
        using var model = new FakeModel(FakeModel.Say("One."), FakeModel.Say("Two."));
        await using var talk = await (await WithModelAsync(model)).OpenConversationAsync([OpenGate]);
        Assert.Equal("One.", string.Concat(await ReadAsync(talk.SayAsync("First"))));
        Assert.Equal("Two.", string.Concat(await ReadAsync(talk.SayAsync("Second"))));
    }

    [Fact]
    public async Task A_reply_that_is_left_in_its_middle_ends_and_the_next_line_is_answered()
    {
        daemon.Needs("turns");
        using var model = new FakeModel(FakeModel.SayForever("la "), FakeModel.Say("Two."));
        await using var talk = await (await WithModelAsync(model)).OpenConversationAsync([OpenGate]);
        await foreach (var part in talk.SayAsync("Sing!"))
        {
            if (part.Kind == ReplyKind.Text)
            {
                break;
            }
        }

        Assert.Equal("Two.", string.Concat(await ReadAsync(talk.SayAsync("Second"))));
    }

    [Fact]
    public async Task A_cancelled_reply_throws_as_a_cancelled_task_does()
    {
        daemon.Needs("turns");
        using var model = new FakeModel(FakeModel.SayForever("la "));
        var mira = await WithModelAsync(model);
        using var cancelled = new CancellationTokenSource();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(async () =>
        {
            await foreach (var part in mira.SayAsync("Sing!", cancelled.Token))
            {
                if (part.Kind == ReplyKind.Text)
                {
                    cancelled.Cancel();
                }
            }
        });
    }

    [Fact]
    public async Task A_reply_whose_client_is_disposed_ends_with_a_reason()
    {
        daemon.Needs("turns");
        using var model = new FakeModel(FakeModel.SayForever("la "));
        var actor = (await WithModelAsync(model)).Actor;
        var client = LorekeeperClient.Connect(daemon.Client.Sidecar!.Handshake);
        await Assert.ThrowsAnyAsync<LorekeeperCallException>(async () =>
        {
            await foreach (var part in client.Save(actor.SaveId).Npc(actor.ActorId, actor.RoleId).SayAsync("Sing!"))
            {
                if (part.Kind == ReplyKind.Text)
                {
                    await client.DisposeAsync();
                }
            }
        });
    }

    [Fact]
    public async Task A_line_that_is_cancelled_before_it_is_said_leaves_the_conversation_as_it_is()
    {
        daemon.Needs("turns");
        using var model = new FakeModel(FakeModel.Say("One."));
        await using var talk = await (await WithModelAsync(model)).OpenConversationAsync([OpenGate]);
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => ReadAsync(talk.SayAsync("First", new CancellationToken(true))));
        Assert.Equal("One.", string.Concat(await ReadAsync(talk.SayAsync("Second"))));
    }

    [Fact]
    public async Task A_conversation_that_was_ended_says_to_open_another()
    {
        daemon.Needs("turns");
        var talk = await (await OfflineAsync("Hello.")).OpenConversationAsync([OpenGate]);
        await talk.DisposeAsync();
        var error = await Assert.ThrowsAsync<DaemonUnavailableException>(() => ReadAsync(talk.SayAsync("Hello?")));
        Assert.Contains("open another", error.Message);
    }

    [Fact]
    public async Task A_conversation_whose_opening_is_cancelled_is_not_opened()
    {
        daemon.Needs("turns");
        var mira = daemon.NewSave().Npc("mira");
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => mira.OpenConversationAsync([OpenGate], new CancellationToken(true)));
    }

    [Fact]
    public async Task No_line_is_an_argument_error()
    {
        var mira = daemon.NewSave().Npc("mira");
        await Assert.ThrowsAsync<ArgumentNullException>(() => ReadAsync(mira.SayAsync(null!)));
        await Assert.ThrowsAsync<ArgumentNullException>(() => ReadAsync(mira.SayAsync((string)null!)));
    }

    [Fact]
    public async Task A_hundred_npcs_answer_at_once()
    {
        daemon.Needs("turns");
        var role = await OfflineRoleAsync("Hello.");
        var save = daemon.NewSave();
        var replies = await Task.WhenAll(Enumerable.Range(0, 100).Select(n => save.Npc($"npc-{n}", role).AskAsync("Hello?")));
        Assert.All(replies, reply => Assert.Equal("Hello.", reply));
    }

    private async Task<int> TalkAsync(FakeModel model, NpcTool tool)
    {
        // Stays on the context of the thread that called it, as a game's own code does.
        var npc = await WithModelAsync(model);
        await using var talk = await npc.OpenConversationAsync([tool]);
        return (await ReadAsync(talk.SayAsync("Where?"))).Count;
    }

    private static async Task<List<ReplyPart>> ReadAsync(IAsyncEnumerable<ReplyPart> reply)
    {
        var parts = new List<ReplyPart>();
        await foreach (var part in reply)
        {
            parts.Add(part);
        }

        return parts;
    }

    private async Task<Npc> OfflineAsync(string line) => daemon.NewSave().Npc("mira", await OfflineRoleAsync(line));

    private async Task<string> OfflineRoleAsync(string line)
    {
        var id = "role-" + Guid.NewGuid();
        await daemon.Client.PutRoleAsync(new Role { RoleId = id, BackendId = "offline", OfflineLines = { line } });
        return id;
    }

    private async Task<Npc> WithModelAsync(FakeModel model)
    {
        var id = "model-" + Guid.NewGuid();
        var backend = new Backend { BackendId = id, BaseUrl = model.Address, Model = "fake", ToolChannel = ToolChannel.Native };
        await daemon.Client.PutBackendAsync(backend);
        await daemon.Client.PutRoleAsync(new Role { RoleId = id, BackendId = id, MemoryTool = false });
        return daemon.NewSave().Npc("orin", id);
    }
}
