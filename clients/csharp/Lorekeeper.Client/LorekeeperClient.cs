using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// Lorekeeper for a game: starts the daemon, or attaches to one, and leads to saves and NPCs. One for the whole game; every
/// member may be used from any thread, and nothing here ever needs the caller's synchronization context.
/// </summary>
public sealed class LorekeeperClient : IAsyncDisposable, IDisposable
{
    private readonly Connection connection;

    private LorekeeperClient(Handshake handshake, ClientOptions? options, SidecarProcess? sidecar)
    {
        options ??= new ClientOptions();
        connection = new Connection(handshake, options);
        Calls = new Calls(connection, options);
        Sidecar = sidecar;
        if (sidecar is not null)
        {
            connection.Recover = sidecar.RecoverAsync;
            sidecar.Restarted += connection.Use;
        }
    }

    /// <summary>The daemon's process; null when this client only attached to a running one.</summary>
    public SidecarProcess? Sidecar { get; }

    /// <summary>The whole contract, for what the rest of this library has no word for.</summary>
    public Calls Calls { get; }

    /// <summary>
    /// Starts the daemon on a data folder, or attaches to the one that runs there, and returns once it answers.
    /// </summary>
    /// <exception cref="SidecarStartException">It could not be found or started; the message says what to do.</exception>
    public static async Task<LorekeeperClient> StartAsync(
        SidecarOptions sidecar, ClientOptions? options = null, CancellationToken cancellation = default)
    {
        var process = await SidecarProcess.StartAsync(sidecar, cancellation).ConfigureAwait(false);
        return new LorekeeperClient(process.Handshake, options, process);
    }

    /// <summary>The same with every default.</summary>
    /// <param name="dataFolder">The folder that keeps all memory.</param>
    public static Task<LorekeeperClient> StartAsync(string dataFolder) =>
        StartAsync(new SidecarOptions(dataFolder));

    /// <summary>Attaches to the daemon that runs on a data folder, and never starts or ends one.</summary>
    /// <exception cref="SidecarStartException">None runs there.</exception>
    public static LorekeeperClient Attach(string dataFolder, ClientOptions? options = null) =>
        new(Handshake.FromDataFolder(dataFolder), options, null);

    /// <summary>Connects to a daemon whose handshake is known.</summary>
    public static LorekeeperClient Connect(Handshake handshake, ClientOptions? options = null) =>
        new(handshake, options, null);

    /// <summary>One save of the player.</summary>
    public Save Save(string id = "default") => new(Calls, id);

    /// <summary>One who remembers, by its address in the words of the contract.</summary>
    public Npc Npc(Actor actor) => new(Calls, actor);

    /// <summary>Lists the saves.</summary>
    public async Task<IReadOnlyList<SaveInfo>> SavesAsync(CancellationToken cancellation = default)
    {
        var saves = new List<SaveInfo>();
        var request = new ListSavesRequest();
        do
        {
            var page = await Calls.Saves.ListSavesAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
            saves.AddRange(page.Saves);
            request = new ListSavesRequest { PageToken = page.NextPageToken };
        }
        while (request.PageToken.Length > 0);
        return saves;
    }

    /// <summary>Sets how actors of a role behave, from the next call on.</summary>
    public async Task PutRoleAsync(Role role, CancellationToken cancellation = default) =>
        await Calls.Chat.PutRoleAsync(new PutRoleRequest { Role = role }, cancellationToken: cancellation)
            .ConfigureAwait(false);

    /// <summary>Sets a language-model server.</summary>
    public async Task PutBackendAsync(Backend backend, CancellationToken cancellation = default) =>
        await Calls.Chat.PutBackendAsync(new PutBackendRequest { Backend = backend }, cancellationToken: cancellation)
            .ConfigureAwait(false);

    /// <summary>Embeds texts; vectors of two identities are never compared.</summary>
    public async Task<IReadOnlyList<IReadOnlyList<float>>> EmbedAsync(
        EmbedKind kind, IEnumerable<string> texts, CancellationToken cancellation = default)
    {
        var request = new EmbedRequest { Kind = kind, Texts = { texts } };
        var answer = await Calls.Embedding.EmbedAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return answer.Embeddings.Select(embedding => (IReadOnlyList<float>)embedding.Values).ToList();
    }

    /// <summary>Tells the daemon's version, what it can do and every limit.</summary>
    public async Task<GetInfoResponse> GetInfoAsync(CancellationToken cancellation = default) =>
        await Calls.System.GetInfoAsync(new GetInfoRequest(), cancellationToken: cancellation).ConfigureAwait(false);

    /// <summary>Closes the connection and ends the daemon that this client started.</summary>
    public async ValueTask DisposeAsync()
    {
        connection.Dispose();
        if (Sidecar is not null)
        {
            await Sidecar.StopAsync().ConfigureAwait(false);
        }
    }

    /// <summary>The same as <see cref="DisposeAsync"/>, waiting for it; safe on any thread.</summary>
    public void Dispose() => Task.Run(() => DisposeAsync().AsTask()).GetAwaiter().GetResult();
}
