using System;
using System.Collections.Generic;
using System.Threading.Tasks;
using Lorekeeper.Tests;
using Lorekeeper.V1;
using Xunit;

[assembly: AssemblyFixture(typeof(DaemonFixture))]

namespace Lorekeeper.Tests;

/// <summary>One real daemon for all tests that do not end it; each test takes a save of its own.</summary>
public sealed class DaemonFixture : IAsyncLifetime
{
    private readonly HashSet<string> served = [];

    public LorekeeperClient Client { get; private set; } = null!;

    public async ValueTask InitializeAsync()
    {
        Client = await LorekeeperClient.StartAsync(Places.Options());
        var calls = Client.Calls;
        await ProbeAsync("records", calls.Memory.GetRetentionAsync(new GetRetentionRequest()).ResponseAsync);
        await ProbeAsync("search", calls.Search.GetIndexStatusAsync(new GetIndexStatusRequest()).ResponseAsync);
        await ProbeAsync("history", calls.Chat.ListMessagesAsync(new ListMessagesRequest { Actor = new Actor() }).ResponseAsync);
        await ProbeAsync("turns", calls.Chat.ListBackendsAsync(new ListBackendsRequest()).ResponseAsync);
        await ProbeAsync("compaction", calls.Compaction.GetSummaryAsync(new GetSummaryRequest { Actor = new Actor() }).ResponseAsync);
        await ProbeAsync("embedding", calls.Embedding.ListModelsAsync(new ListModelsRequest()).ResponseAsync);
        await ProbeAsync("saves", calls.Saves.ListSavesAsync(new ListSavesRequest()).ResponseAsync);
    }

    public ValueTask DisposeAsync() => Client.DisposeAsync();

    internal Save NewSave() => Client.Save(Guid.NewGuid().ToString("N"));

    /// <summary>Leaves a test out, and says so, where the daemon answers that it does not serve what is tested.</summary>
    internal void Needs(string part) =>
        Assert.SkipUnless(served.Contains(part), $"The daemon that is tested does not serve {part}.");

    private async Task ProbeAsync<T>(string part, Task<T> call)
    {
        try
        {
            await call;
            served.Add(part);
        }
        catch (NotServedException)
        {
            // Told by the test that needs it.
        }
    }
}
