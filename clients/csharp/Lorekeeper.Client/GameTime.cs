using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// A point of game time. The game decides how long a tick is; times of different timelines cannot be compared. Wall time
/// never decides what an NPC knows.
/// </summary>
/// <param name="Tick">The game's own unit of time; may be negative.</param>
/// <param name="Timeline">The timeline; "world" unless said otherwise.</param>
public readonly record struct GameTime(long Tick, string Timeline = "world")
{
    /// <summary>A tick of the timeline "world".</summary>
    public static implicit operator GameTime(long tick) => new(tick);

    internal Moment ToMoment() => new() { TimelineId = Timeline ?? "world", Tick = Tick };

    internal static GameTime? From(Moment? moment) =>
        moment is null ? null : new GameTime(moment.Tick, moment.TimelineId);
}
