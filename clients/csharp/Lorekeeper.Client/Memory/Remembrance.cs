using System;
using System.Collections.Generic;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>One memory to be kept: what happened, and when in the game.</summary>
/// <param name="Text">What to remember, and to find it by.</param>
/// <param name="When">When in the game it happened.</param>
public sealed record Remembrance(string Text, GameTime When)
{
    /// <summary>The id; a random one unless given. The same one again changes nothing.</summary>
    public string Id { get; init; } = Guid.NewGuid().ToString("N");

    /// <summary>A free label, such as "personal" or "relationship".</summary>
    public string Scope { get; init; } = "personal";

    /// <summary>What it is; an event unless said otherwise.</summary>
    public RecordKind Kind { get; init; } = RecordKind.Event;

    /// <summary>How much it matters, 0 to 1.</summary>
    public double Importance { get; init; } = 0.5;

    /// <summary>Words to filter by.</summary>
    public IReadOnlyCollection<string> Tags { get; init; } = [];

    /// <summary>Groups whose members may recall it too; "*" means everybody in the save.</summary>
    public IReadOnlyCollection<string> Audience { get; init; } = [];

    /// <summary>The game's own data, as JSON text.</summary>
    public string PayloadJson { get; init; } = "";

    /// <summary>Sets what else the contract has for a record; null means nothing.</summary>
    public Action<NewRecord>? Configure { get; init; }

    internal NewRecord ToRecord()
    {
        var record = new NewRecord
        {
            RecordId = Id,
            Scope = Scope,
            Kind = Kind,
            PayloadJson = PayloadJson,
            Moment = When.ToMoment(),
            Importance = Importance,
            SearchableText = Text,
            Tags = { Tags },
            Audience = { Audience },
        };
        Configure?.Invoke(record);
        return record;
    }
}
