using System;
using System.Threading.Tasks;
using Lorekeeper.Tests;
using Xunit;

[assembly: AssemblyFixture(typeof(DaemonFixture))]

namespace Lorekeeper.Tests;

/// <summary>One real daemon for all tests that do not end it; each test takes a save of its own.</summary>
public sealed class DaemonFixture : IAsyncLifetime
{
    public LorekeeperClient Client { get; private set; } = null!;

    public async ValueTask InitializeAsync() => Client = await LorekeeperClient.StartAsync(Places.Options());

    public ValueTask DisposeAsync() => Client.DisposeAsync();

    internal Save NewSave() => Client.Save(Guid.NewGuid().ToString("N"));
}
