using System;
using System.Collections.Generic;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>What the player says, and how the turn is to go. A plain text converts to one.</summary>
/// <param name="Text">The player's line.</param>
public sealed record Line(string Text)
{
    /// <summary>
    /// The game's id of this line. The same line sent again with the same id is not stored twice; a random one unless given.
    /// </summary>
    public string Id { get; init; } = Guid.NewGuid().ToString("N");

    /// <summary>Now, in game time; without it nothing is recalled.</summary>
    public GameTime? Now { get; init; }

    /// <summary>Who speaks, in the words of the game.</summary>
    public string Speaker { get; init; } = "";

    /// <summary>Instructions for this turn alone.</summary>
    public string Instructions { get; init; } = "";

    /// <summary>The state of the world for this turn alone, as text or JSON.</summary>
    public string WorldState { get; init; } = "";

    /// <summary>The language-model server; empty means what the role says. "offline" needs none.</summary>
    public string Backend { get; init; } = "";

    /// <summary>The tools that may be called; null means what the role says, empty none.</summary>
    public IReadOnlyCollection<string>? AllowedTools { get; init; }

    /// <summary>Whether what is said survives the daemon; null means what the role says.</summary>
    public bool? Persist { get; init; }

    /// <summary>
    /// Sets what else the contract has for a turn, such as a schema for the answer; null means nothing.
    /// </summary>
    public Action<TurnInput>? Configure { get; init; }

    /// <summary>A line with nothing but its text.</summary>
    public static implicit operator Line(string text) => new(text);

    /// <exception cref="ArgumentNullException">There is no line, or it has no text.</exception>
    internal static TurnInput ToInput(Line? line)
    {
        _ = line?.Text ?? throw new ArgumentNullException(nameof(line));
        var input = new TurnInput
        {
            Text = line.Text,
            InputId = line.Id,
            Moment = line.Now?.ToMoment(),
            Speaker = line.Speaker,
            Instructions = line.Instructions,
            WorldState = line.WorldState,
            BackendId = line.Backend,
        };
        if (line.AllowedTools is { } allowed)
        {
            input.AllowedTools = new AllowedTools { Names = { allowed } };
        }

        if (line.Persist is { } persist)
        {
            input.Persist = persist;
        }

        line.Configure?.Invoke(input);
        return input;
    }
}
