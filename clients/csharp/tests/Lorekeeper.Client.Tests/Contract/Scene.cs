using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using Grpc.Core;
using Lorekeeper.V1;

namespace Lorekeeper.Tests.Contract;

/// <summary>A save of its own for one row, and what rows are written with.</summary>
public sealed class Scene(LorekeeperClient client)
{
    public Calls Calls => client.Calls;

    public Save Save { get; } = client.Save("row-" + Guid.NewGuid().ToString("N"));

    public Npc Mira => Save.Npc("mira");

    public Actor Actor => Mira.Actor;

    internal LorekeeperClient Client => client;

    /// <summary>Game time of the world, as the rows have it.</summary>
    internal static Moment At(long tick) => new() { TimelineId = "world", Tick = tick };

    /// <summary>The helper M of the rows: a fact with its text as payload.</summary>
    internal static NewRecord Fact(string id, string text, long tick = 1) => new()
    {
        RecordId = id,
        Scope = "personal",
        Kind = RecordKind.Fact,
        PayloadJson = $$"""{"text":"{{text}}"}""",
        SearchableText = text,
        Moment = At(tick),
    };

    internal async Task AddAsync(params NewRecord[] records) =>
        await Calls.Memory.AddRecordsAsync(new AddRecordsRequest { Actor = Actor, Records = { records } });

    internal async Task SayAsync(params string[] lines) =>
        await Mira.HeardAsync(lines.Select(line => Utterance.Player(line)));

    internal async Task<Checkpoint> CheckpointAsync(string name) =>
        (await Calls.Saves.CreateCheckpointAsync(new CreateCheckpointRequest { SaveId = Save.Id, Name = name })).Checkpoint;

    /// <summary>A role of the row's own; it speaks these lines without a model.</summary>
    internal async Task<Role> RoleAsync(params string[] lines)
    {
        var role = new Role { RoleId = "row-" + Guid.NewGuid(), BackendId = "offline", OfflineLines = { lines } };
        await client.PutRoleAsync(role);
        return role;
    }

    internal static async Task<List<T>> AllAsync<T>(IAsyncStreamReader<T> stream)
    {
        var all = new List<T>();
        while (await stream.MoveNext(default))
        {
            all.Add(stream.Current);
        }

        return all;
    }
}
