using System;
using System.Threading.Tasks;
using Xunit;

namespace Lorekeeper.Tests;

/// <summary>Two seconds count here: these run alone.</summary>
[CollectionDefinition("alone", DisableParallelization = true)]
public sealed class Alone;

[Collection("alone")]
public sealed class GameEndTests(ITestOutputHelper output)
{
    [Theory]
    [InlineData("hold")]
    [InlineData("watch")]
    public async Task A_daemon_is_gone_two_seconds_after_its_game_was_killed(string behaviour)
    {
        using var game = Game.Start(behaviour, Places.NewDataFolder());
        var daemon = int.Parse((await game.StandardOutput.ReadLineAsync())!);
        game.Kill();
        await GoneAsync(daemon);
    }

    [Fact]
    public async Task A_daemon_is_gone_two_seconds_after_its_game_ended_without_disposing_anything()
    {
        using var game = Game.Start("leave", Places.NewDataFolder());
        var daemon = int.Parse((await game.StandardOutput.ReadLineAsync())!);
        await game.WaitForExitAsync();
        await GoneAsync(daemon);
    }

    private async Task GoneAsync(int daemon)
    {
        var took = await Eventually.True(() => Eventually.IsGone(daemon), TimeSpan.FromSeconds(2), "The end of the daemon");
        output.WriteLine($"The daemon was gone after {took.TotalMilliseconds:F0} ms.");
    }
}
