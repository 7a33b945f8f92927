using System;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Xunit;

namespace Lorekeeper.Tests;

public sealed class SidecarTests
{
    private static readonly TimeSpan Patience = TimeSpan.FromSeconds(30);

    [Fact]
    public async Task A_daemon_is_gone_after_the_client_is_disposed()
    {
        var options = Places.Options();
        var client = await LorekeeperClient.StartAsync(options);
        var daemon = client.Sidecar!.Handshake.ProcessId;
        await client.DisposeAsync();
        await Eventually.True(() => Eventually.IsGone(daemon), Patience, "The end of the daemon");
        Assert.False(File.Exists(Path.Combine(options.DataFolder, Handshake.FileName)));
    }

    [Fact]
    public async Task What_was_remembered_is_there_after_a_restart_of_the_game()
    {
        var options = Places.Options();
        await using (var first = await LorekeeperClient.StartAsync(options))
        {
            await first.Save().Npc("mira").Memory.WriteAsync("one");
        }

        await using var second = await LorekeeperClient.StartAsync(options);
        Assert.Equal("one", (await second.Save().Npc("mira").Memory.ReadAsync()).Text);
    }

    [Fact]
    public async Task A_data_folder_may_have_any_name()
    {
        var folder = Path.Combine(Places.NewDataFolder(), "Željko 田中　テスト émoji🎮 'quoted\" name");
        await using var client = await LorekeeperClient.StartAsync(Places.Options(folder));
        Assert.Equal(folder, (await client.GetInfoAsync()).DataDir);
    }

    [Fact]
    public async Task Settings_reach_the_daemon()
    {
        var settings = new System.Collections.Generic.Dictionary<string, string> { ["memory.max_versions"] = "2" };
        await using var client = await LorekeeperClient.StartAsync(Places.Options() with { Settings = settings });
        var limit = (await client.GetInfoAsync()).Limits.Single(one => one.Name == "memory.max_versions");
        Assert.Equal(2, limit.Value);
    }

    [Fact]
    public async Task Two_games_on_one_data_folder_share_one_daemon()
    {
        var options = Places.Options();
        await using var first = await LorekeeperClient.StartAsync(options);
        await using var second = await LorekeeperClient.StartAsync(options);
        await first.Save().Npc("mira").Memory.WriteAsync("one");
        Assert.Equal("one", (await second.Save().Npc("mira").Memory.ReadAsync()).Text);
        Assert.True(second.Sidecar!.Handshake.Reused);
        Assert.Equal(first.Sidecar!.Handshake.ProcessId, second.Sidecar.Handshake.ProcessId);
    }

    [Fact]
    public async Task A_game_that_attached_goes_on_when_the_one_that_started_the_daemon_ends()
    {
        var options = Places.Options();
        var first = await LorekeeperClient.StartAsync(options);
        await using var second = await LorekeeperClient.StartAsync(options);
        await first.Save().Npc("mira").Memory.WriteAsync("one");
        await first.DisposeAsync();
        Assert.Equal("one", (await second.Save().Npc("mira").Memory.ReadAsync()).Text);
        Assert.False(second.Sidecar!.Handshake.Reused);
    }

    [Fact]
    public async Task A_tool_attaches_to_the_daemon_of_a_game_and_never_ends_it()
    {
        var options = Places.Options();
        await using var game = await LorekeeperClient.StartAsync(options);
        await using (var tool = LorekeeperClient.Attach(options.DataFolder))
        {
            await tool.Save().Npc("mira").Memory.WriteAsync("one");
        }

        Assert.Equal("one", (await game.Save().Npc("mira").Memory.ReadAsync()).Text);
    }

    [Fact]
    public void Attaching_where_no_daemon_runs_says_so()
    {
        var error = Assert.Throws<SidecarStartException>(() => LorekeeperClient.Attach(Places.NewDataFolder()));
        Assert.Contains("No daemon runs", error.Message);
    }

    [Fact]
    public async Task A_killed_daemon_is_started_again_and_nothing_acknowledged_is_lost()
    {
        await using var client = await LorekeeperClient.StartAsync(Places.Options());
        var memory = client.Save().Npc("mira").Memory;
        await memory.WriteAsync("acknowledged");
        var killed = Kill(client);
        Assert.Equal("acknowledged", (await memory.ReadAsync()).Text);
        await memory.AppendAsync("and after");
        Assert.Equal("acknowledged\nand after", (await memory.ReadAsync()).Text);
        Assert.NotEqual(killed, client.Sidecar!.Handshake.ProcessId);
    }

    [Fact]
    public async Task Edits_while_the_daemon_is_killed_are_made_once_each()
    {
        var patient = new ClientOptions { Deadline = Patience };
        await using var client = await LorekeeperClient.StartAsync(Places.Options(), patient);
        var npcs = Enumerable.Range(0, 20).Select(number => client.Save().Npc($"npc-{number}")).ToList();
        var edits = npcs.Select((npc, number) => npc.Memory.EditAsync([MemoryEdit.Append($"fact {number}")])).ToList();
        Kill(client);
        await Task.WhenAll(edits);
        var texts = await Task.WhenAll(npcs.Select(async npc => (await npc.Memory.ReadAsync()).Text));
        Assert.Equal(Enumerable.Range(0, 20).Select(number => $"fact {number}"), texts);
    }

    [Fact]
    public async Task The_game_is_told_of_a_restart()
    {
        await using var client = await LorekeeperClient.StartAsync(Places.Options());
        var restarted = new TaskCompletionSource<Handshake>();
        client.Sidecar!.Restarted += restarted.SetResult;
        var killed = Kill(client);
        Assert.NotEqual(killed, (await restarted.Task.WaitAsync(Patience)).ProcessId);
    }

    [Fact]
    public async Task A_daemon_that_crashes_again_soon_stays_down_and_calls_say_so()
    {
        await using var client = await LorekeeperClient.StartAsync(Places.Options());
        var restarted = new TaskCompletionSource<Handshake>();
        client.Sidecar!.Restarted += restarted.SetResult;
        Kill(client);
        await restarted.Task.WaitAsync(Patience);
        Kill(client);
        await Eventually.True(() => client.Sidecar.State == SidecarState.Failed, Patience, "Giving up");
        await Assert.ThrowsAsync<DaemonUnavailableException>(() => client.Save().Npc("mira").Memory.ReadAsync());
        Assert.Contains("crashed again", client.Sidecar.Failure!.Message);
    }

    [Fact]
    public async Task A_missing_program_is_named_with_what_to_do()
    {
        var options = Places.Options() with { Command = ["/nowhere/lorekeeper"] };
        var error = await Assert.ThrowsAsync<SidecarStartException>(() => LorekeeperClient.StartAsync(options));
        Assert.Contains("\"/nowhere/lorekeeper\" cannot be started", error.Message);
        Assert.Contains("SidecarOptions.Command", error.Message);
    }

    [Theory]
    [InlineData("")]
    [InlineData(null)]
    public Task A_start_without_a_data_folder_is_an_argument_error(string? folder) =>
        Assert.ThrowsAsync<ArgumentException>(() => LorekeeperClient.StartAsync(folder!));

    [Fact]
    public async Task A_data_folder_that_cannot_be_used_is_told_in_the_daemons_own_words()
    {
        var file = Path.Combine(Places.NewDataFolder(), "a file");
        File.WriteAllText(file, "");
        var error = await Assert.ThrowsAsync<SidecarStartException>(() => LorekeeperClient.StartAsync(Places.Options(file)));
        Assert.Contains(file, error.Message);
    }

    [Fact]
    public async Task A_program_that_is_no_daemon_is_told()
    {
        var options = Places.Options() with { Command = ["/bin/echo", "hello"] };
        var error = await Assert.ThrowsAsync<SidecarStartException>(() => LorekeeperClient.StartAsync(options));
        Assert.Contains("not a daemon's line", error.Message);
    }

    [Fact]
    public async Task A_program_that_says_nothing_is_given_up_and_ended()
    {
        var options = Places.Options() with
        {
            Command = ["/bin/sh", "-c", "echo $$ >&2; exec sleep 600"],
            StartTimeout = TimeSpan.FromMilliseconds(300),
        };
        var error = await Assert.ThrowsAsync<SidecarStartException>(() => LorekeeperClient.StartAsync(options));
        var program = int.Parse(error.Log);
        await Eventually.True(() => Eventually.IsGone(program), Patience, "The end of the program");
    }

    [Fact]
    public async Task A_wrong_setting_is_told_with_the_daemons_exit_code_and_log()
    {
        var settings = new System.Collections.Generic.Dictionary<string, string> { ["memory.nonsense"] = "1" };
        var options = Places.Options() with { Settings = settings };
        var error = await Assert.ThrowsAsync<SidecarStartException>(() => LorekeeperClient.StartAsync(options));
        Assert.Equal(2, error.ExitCode);
    }

    [Fact]
    public async Task A_start_can_be_cancelled()
    {
        using var cancelled = new CancellationTokenSource();
        var start = LorekeeperClient.StartAsync(Places.Options(), null, cancelled.Token);
        cancelled.Cancel();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => start);
    }

    [Fact]
    public async Task The_native_launcher_starts_watches_and_ends_a_daemon()
    {
        var options = Places.Options() with { UseNativeLauncher = true };
        var client = await LorekeeperClient.StartAsync(options);
        await client.Save().Npc("mira").Memory.WriteAsync("one");
        var killed = Kill(client);
        Assert.Equal("one", (await client.Save().Npc("mira").Memory.ReadAsync()).Text);
        var daemon = client.Sidecar!.Handshake.ProcessId;
        Assert.NotEqual(killed, daemon);
        await client.DisposeAsync();
        await Eventually.True(() => Eventually.IsGone(daemon), Patience, "The end of the daemon");
    }

    [Fact]
    public async Task The_native_launcher_names_a_missing_program()
    {
        var options = Places.Options() with { UseNativeLauncher = true, Command = ["/nowhere/lorekeeper"] };
        var error = await Assert.ThrowsAsync<SidecarStartException>(() => LorekeeperClient.StartAsync(options));
        Assert.Contains("/nowhere/lorekeeper", error.Message);
    }

    [Fact]
    public async Task A_handshake_never_shows_its_token()
    {
        await using var client = await LorekeeperClient.StartAsync(Places.Options());
        Assert.DoesNotContain(client.Sidecar!.Handshake.Token, $"{client.Sidecar.Handshake}");
    }

    private static int Kill(LorekeeperClient client)
    {
        var id = client.Sidecar!.Handshake.ProcessId;
        using var process = Process.GetProcessById(id);
        process.Kill();
        return id;
    }
}
