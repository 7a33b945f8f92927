using System;
using System.Threading.Tasks;
using Xunit;

namespace Lorekeeper.Tests;

/// <summary>Two seconds count here: these run alone.</summary>
[CollectionDefinition("alone", DisableParallelization = true)]
public sealed class Alone;

[Collection("alone")]
public sealed class GameEndTests
{
    private static readonly TimeSpan TwoSeconds = TimeSpan.FromSeconds(2);

    [Fact]
    public async Task A_daemon_is_gone_two_seconds_after_its_game_was_killed()
    {
        using var game = Game.Start("hold", Places.NewDataFolder());
        var daemon = int.Parse((await game.StandardOutput.ReadLineAsync())!);
        game.Kill();
        await Eventually.True(() => Eventually.IsGone(daemon), TwoSeconds, "The end of the daemon");
    }

    [Fact]
    public async Task A_daemon_is_gone_two_seconds_after_its_game_was_killed_in_the_middle_of_a_call()
    {
        using var game = Game.Start("watch", Places.NewDataFolder());
        var daemon = int.Parse((await game.StandardOutput.ReadLineAsync())!);
        game.Kill();
        await Eventually.True(() => Eventually.IsGone(daemon), TwoSeconds, "The end of the daemon");
    }

    [Fact]
    public async Task A_daemon_is_gone_two_seconds_after_its_game_ended_without_disposing_anything()
    {
        using var game = Game.Start("leave", Places.NewDataFolder());
        var daemon = int.Parse((await game.StandardOutput.ReadLineAsync())!);
        await game.WaitForExitAsync();
        await Eventually.True(() => Eventually.IsGone(daemon), TwoSeconds, "The end of the daemon");
    }
}
