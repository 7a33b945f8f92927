using System;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>A save as it was.</summary>
/// <param name="Id">Its id.</param>
/// <param name="Name">A name for people.</param>
/// <param name="When">The game's moment; null when there was none.</param>
/// <param name="Created">When it was made, by the wall clock.</param>
public sealed record CheckpointInfo(string Id, string Name, GameTime? When, DateTimeOffset Created)
{
    internal static CheckpointInfo From(Checkpoint checkpoint) => new(
        checkpoint.CheckpointId,
        checkpoint.Name,
        GameTime.From(checkpoint.Moment),
        checkpoint.Created?.ToDateTimeOffset() ?? default);
}
