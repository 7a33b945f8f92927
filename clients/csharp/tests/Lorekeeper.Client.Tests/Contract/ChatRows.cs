using System.Linq;
using System.Threading.Tasks;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests.Contract;

public static class ChatRows
{
    public static async Task AppendMessages(Scene scene)
    {
        var lines = Enumerable.Range(0, 20).Select(n => new NewMessage { Role = "user", Content = $"line {n}" });
        var request = new AppendMessagesRequest { Actor = scene.Actor, Messages = { lines } };
        Assert.Equal(20, (await scene.Calls.Chat.AppendMessagesAsync(request)).Appended);
        Assert.Equal(0, (await scene.Mira.Memory.ReadAsync()).Version);
    }

    public static async Task ListMessages(Scene scene)
    {
        await scene.SayAsync("hello", "hi");
        var page = await scene.Calls.Chat.ListMessagesAsync(new ListMessagesRequest { Actor = scene.Actor });
        Assert.Equal(["hello", "hi"], page.Messages.Select(message => message.Content));
    }

    public static async Task ListTranscript(Scene scene)
    {
        await scene.SayAsync("hello");
        var entry = (await scene.Calls.Chat.ListTranscriptAsync(new ListTranscriptRequest { Actor = scene.Actor })).Entries.Single();
        Assert.Equal((TranscriptKind.User, "hello"), (entry.Kind, entry.Content));
    }

    public static async Task AppendTranscript(Scene scene)
    {
        var row = new TranscriptEntry { Kind = TranscriptKind.ToolCall, Key = "open_gate", Content = "{}", CallId = "c1" };
        await scene.Calls.Chat.AppendTranscriptAsync(new AppendTranscriptRequest { Actor = scene.Actor, Entries = { row } });
        var page = await scene.Calls.Chat.ListTranscriptAsync(new ListTranscriptRequest { Actor = scene.Actor });
        Assert.Equal("c1", page.Entries.Single().CallId);
        Assert.Empty(await scene.Mira.HistoryAsync());
    }

    public static async Task ClearHistory(Scene scene)
    {
        await scene.Mira.Memory.WriteAsync("kept");
        await scene.SayAsync("hello");
        var cleared = await scene.Calls.Chat.ClearHistoryAsync(new ClearHistoryRequest { Actor = scene.Actor });
        Assert.Equal((1, "kept"), (cleared.Messages, (await scene.Mira.Memory.ReadAsync()).Text));
    }

    public static async Task PutRole(Scene scene)
    {
        var role = new Role { RoleId = scene.Save.Id, SystemPrompt = "You sell lamps." };
        var put = await scene.Calls.Chat.PutRoleAsync(new PutRoleRequest { Role = role });
        Assert.Equal("You sell lamps.", put.Role.Effective.SystemPrompt);
    }

    public static async Task GetRole(Scene scene)
    {
        var role = await scene.RoleAsync("Hello.");
        var got = await scene.Calls.Chat.GetRoleAsync(new GetRoleRequest { RoleId = role.RoleId });
        Assert.Equal(["Hello."], got.Role.Effective.OfflineLines);
    }

    public static async Task ListRoles(Scene scene)
    {
        var role = await scene.RoleAsync();
        var listed = await scene.Calls.Chat.ListRolesAsync(new ListRolesRequest { PageSize = 1_000 });
        Assert.Contains(role.RoleId, listed.Roles.Select(one => one.Effective.RoleId));
    }

    public static async Task DeleteRole(Scene scene)
    {
        var request = new DeleteRoleRequest { RoleId = (await scene.RoleAsync()).RoleId };
        Assert.True((await scene.Calls.Chat.DeleteRoleAsync(request)).Existed);
        Assert.False((await scene.Calls.Chat.DeleteRoleAsync(request)).Existed);
    }

    public static async Task BuildPrompt(Scene scene)
    {
        var role = new Role { RoleId = scene.Save.Id, SystemPrompt = "You sell lamps." };
        await scene.Client.PutRoleAsync(role);
        var actor = scene.Save.Npc("mira", role.RoleId).Actor;
        var request = new BuildPromptRequest { Actor = actor, Input = new TurnInput { Text = "Hi", SystemPrompt = "You sell oil." } };
        var messages = (await scene.Calls.Chat.BuildPromptAsync(request)).Messages;
        Assert.Contains("You sell oil.", messages[0].Content);
        Assert.DoesNotContain("You sell lamps.", messages[0].Content);
        Assert.EndsWith("Hi", messages[^1].Content);
    }

    public static async Task Send(Scene scene)
    {
        var mira = scene.Save.Npc("mira", (await scene.RoleAsync("Mind the step.")).RoleId);
        var request = new SendRequest { Actor = mira.Actor, Input = new TurnInput { Text = "Hello" } };
        using var call = scene.Calls.Chat.Send(request);
        var events = (await Scene.AllAsync(call.ResponseStream)).Select(answer => answer.Event).ToList();
        Assert.Equal("Mind the step.", events[^1].Completed.Text);
        Assert.Equal("Mind the step.", string.Concat(events.Select(one => one.Text?.Text)));
        Assert.Equal(["Hello", "Mind the step."], (await mira.HistoryAsync()).Select(one => one.Text));
    }

    public static async Task Converse(Scene scene)
    {
        var mira = scene.Save.Npc("mira", (await scene.RoleAsync("One.", "Two.")).RoleId);
        using var call = scene.Calls.Chat.Converse();
        await call.RequestStream.WriteAsync(new ConverseRequest { Open = new ConverseOpen { Actor = mira.Actor } });
        await call.RequestStream.WriteAsync(new ConverseRequest { Line = new TurnInput { Text = "First" } });
        await call.RequestStream.WriteAsync(new ConverseRequest { Line = new TurnInput { Text = "Second" } });
        await call.RequestStream.CompleteAsync();
        var events = (await Scene.AllAsync(call.ResponseStream)).Select(answer => answer.Event);
        Assert.Equal(["One.", "Two."], events.Where(one => one.Completed is not null).Select(one => one.Completed.Text));
    }

    public static async Task PutBackend(Scene scene)
    {
        var put = await scene.Calls.Chat.PutBackendAsync(new PutBackendRequest { Backend = Unreachable(scene) });
        Assert.Equal(scene.Save.Id, put.Backend.Backend.BackendId);
        await scene.Calls.Chat.DeleteBackendAsync(new DeleteBackendRequest { BackendId = scene.Save.Id });
    }

    public static async Task ListBackends(Scene scene)
    {
        await scene.Client.PutBackendAsync(Unreachable(scene));
        var listed = await scene.Calls.Chat.ListBackendsAsync(new ListBackendsRequest { PageSize = 1_000 });
        Assert.Contains(scene.Save.Id, listed.Backends.Select(one => one.Backend.BackendId));
        await scene.Calls.Chat.DeleteBackendAsync(new DeleteBackendRequest { BackendId = scene.Save.Id });
    }

    public static async Task DeleteBackend(Scene scene)
    {
        await scene.Client.PutBackendAsync(Unreachable(scene));
        var request = new DeleteBackendRequest { BackendId = scene.Save.Id };
        Assert.True((await scene.Calls.Chat.DeleteBackendAsync(request)).Existed);
    }

    public static async Task ProbeBackend(Scene scene)
    {
        var probe = await scene.Calls.Chat.ProbeBackendAsync(new ProbeBackendRequest { Backend = Unreachable(scene) });
        Assert.False(probe.Reachable);
    }

    // Port 1 is one that no model server has.
    private static Backend Unreachable(Scene scene) =>
        new() { BackendId = scene.Save.Id, BaseUrl = "http://127.0.0.1:1/v1", Model = "none" };
}
