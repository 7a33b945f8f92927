using System.Collections.Generic;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>One memory that was found.</summary>
/// <param name="Id">Its id.</param>
/// <param name="Text">What it says.</param>
/// <param name="When">When in the game it happened.</param>
/// <param name="Score">What decided its place; comparable within one search only.</param>
/// <param name="Hit">Everything that the daemon tells: owner, payload, why the actor may know it, each channel's score.</param>
public sealed record Recollection(string Id, string Text, GameTime When, double Score, Hit Hit)
{
    internal static Recollection From(Hit hit) => new(
        hit.Record.RecordId,
        hit.Record.SearchableText,
        GameTime.From(hit.Record.Moment) ?? default,
        hit.Score,
        hit);
}

/// <summary>What a search found.</summary>
/// <param name="Found">The memories, best first.</param>
/// <param name="Degraded">Why it is less than it could be, such as no model for meaning; unspecified when it is not.</param>
public sealed record SearchResult(IReadOnlyList<Recollection> Found, DegradedReason Degraded);
