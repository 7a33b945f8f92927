using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Threading.Tasks;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests;

/// <summary>The voice that the engines' add-ons are made of, on a daemon that runs already.</summary>
public sealed class VoiceTests(DaemonFixture daemon) : IDisposable
{
    private const string RoleId = "VoiceTest";

    private readonly Save save = daemon.NewSave();
    private readonly GameSession session = GameSession.Start(
        Places.Options(daemon.Client.Sidecar!.Handshake.DataFolder), null, new FrameQueue(error => Assert.Fail($"{error}")));

    public void Dispose() => session.Dispose();

    [Fact]
    public async Task Lines_are_answered_in_the_order_in_which_they_were_said()
    {
        daemon.Needs("turns");
        var lines = Enumerable.Range(0, 30).Select(number => $"line {number}").ToList();
        await SayAsync(() => Address(save.Id), lines);
        var said = (await save.Npc("mira", RoleId).HistoryAsync()).Where(one => one.Role == "user");
        Assert.Equal(lines, said.Select(one => one.Text));
    }

    [Fact]
    public async Task A_line_that_is_cancelled_at_once_is_never_answered()
    {
        daemon.Needs("turns");
        await session.Client;
        using var mira = session.Voice(() => Address(save.Id));
        var ends = Ends(mira);
        for (var line = 0; line < 30; line++)
        {
            mira.Say("Hello?");
            mira.Cancel();
        }

        await FramesUntil(() => ends.Count == 30);
        Assert.All(ends, end => Assert.Equal("CANCELLED", end));
    }

    [Fact]
    public async Task A_voice_speaks_in_the_save_that_is_played_when_the_line_is_said()
    {
        daemon.Needs("turns");
        var (other, played) = (daemon.NewSave(), save);
        Actor Who() => Address(played.Id);
        using var mira = session.Voice(Who);
        mira.Offer("open_gate", "Opens a gate.", "{}");
        await SayAsync(mira, ["before"]);
        played = other;
        await SayAsync(mira, ["after"]);
        Assert.Equal("before", (await save.Npc("mira", RoleId).HistoryAsync())[0].Text);
        Assert.Equal("after", (await other.Npc("mira", RoleId).HistoryAsync())[0].Text);
    }

    [Fact]
    public async Task A_voice_with_tools_goes_on_after_the_daemon_crashed_between_two_lines()
    {
        daemon.Needs("turns");
        using var game = GameSession.Start(Places.Options(), null, new FrameQueue(error => Assert.Fail($"{error}")));
        var client = await game.Client;
        await client.PutRoleAsync(
            new Role { RoleId = RoleId, BackendId = "offline", OfflineLines = { "Hello." }, PersistHistory = true });
        using var mira = game.Voice(() => Address(save.Id));
        mira.Offer("open_gate", "Opens a gate.", "{}");
        var ends = Ends(mira);
        mira.Say("before");
        await FramesUntil(() => ends.Count == 1, game);

        var restarted = new TaskCompletionSource<Handshake>();
        client.Sidecar!.Restarted += restarted.SetResult;
        using (var process = Process.GetProcessById(client.Sidecar.Handshake.ProcessId))
        {
            process.Kill();
        }

        await restarted.Task.WaitAsync(TimeSpan.FromSeconds(60));
        mira.Say("after");
        await FramesUntil(() => ends.Count == 2, game);
        Assert.Equal(["Hello.", "Hello."], ends);
        var said = (await client.Npc(Address(save.Id)).HistoryAsync()).Where(one => one.Role == "user");
        Assert.Equal(["before", "after"], said.Select(one => one.Text));
    }

    private static Actor Address(string saveId) => new() { SaveId = saveId, ActorId = "mira", RoleId = RoleId };

    private static List<string> Ends(NpcVoice voice)
    {
        var ends = new List<string>();
        voice.Completed += ends.Add;
        voice.Failed += (reason, _) => ends.Add(reason);
        return ends;
    }

    private async Task SayAsync(Func<Actor> who, IReadOnlyList<string> lines)
    {
        using var voice = session.Voice(who);
        await SayAsync(voice, lines);
    }

    private async Task SayAsync(NpcVoice voice, IReadOnlyList<string> lines)
    {
        await daemon.Client.PutRoleAsync(new Role { RoleId = RoleId, BackendId = "offline", OfflineLines = { "Hello." } });
        await session.Client;
        var ends = Ends(voice);
        foreach (var line in lines)
        {
            voice.Say(line);
        }

        await FramesUntil(() => ends.Count == lines.Count);
        Assert.All(ends, end => Assert.Equal("Hello.", end));
    }

    private Task FramesUntil(Func<bool> condition, GameSession? game = null) => Eventually.True(
        () =>
        {
            (game ?? session).Frames.Drain();
            return condition();
        },
        TimeSpan.FromSeconds(60),
        "The end of every line");
}
