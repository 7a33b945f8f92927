using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>What a part of a reply is.</summary>
public enum ReplyKind
{
    /// <summary>The next piece of what the NPC says.</summary>
    Text,

    /// <summary>The turn began; the player's line is stored.</summary>
    Started,

    /// <summary>What was said so far in this turn is taken back: clear the speech bubble.</summary>
    TakenBack,

    /// <summary>A tool is called. The conversation answers those of the game itself.</summary>
    ToolCalled,

    /// <summary>A tool answered.</summary>
    ToolAnswered,

    /// <summary>Something did not fit and was left out.</summary>
    Cut,

    /// <summary>Something is not as it should be; the turn goes on.</summary>
    Warning,

    /// <summary>The turn ended well and is stored; <see cref="ReplyPart.Event"/> has the whole text, tokens and times.</summary>
    Completed,

    /// <summary>Something that this version of the client does not know; pass over it.</summary>
    Other,
}

/// <summary>
/// One thing of a reply, in order. Most are pieces of text, and printing a part prints its text; a game that wants no more
/// needs no more.
/// </summary>
/// <param name="Kind">What it is.</param>
/// <param name="Text">The piece of text; empty for everything that is no text.</param>
/// <param name="Event">Everything that the daemon tells of it; null for a plain piece of text.</param>
public readonly record struct ReplyPart(ReplyKind Kind, string Text, TurnEvent? Event)
{
    /// <summary>Whether a new message begins, as after a tool call.</summary>
    public bool StartsMessage => Event?.Text?.StartsMessage ?? false;

    /// <summary>The piece of text.</summary>
    public override string ToString() => Text;

    internal static ReplyPart From(object read) => read is string text
        ? new ReplyPart(ReplyKind.Text, text, null)
        : From((TurnEvent)read);

    private static ReplyPart From(TurnEvent happened) =>
        new(KindOf(happened.EventCase), happened.Text?.Text ?? "", happened);

    private static ReplyKind KindOf(TurnEvent.EventOneofCase kind) => kind switch
    {
        TurnEvent.EventOneofCase.Text => ReplyKind.Text,
        TurnEvent.EventOneofCase.Started => ReplyKind.Started,
        TurnEvent.EventOneofCase.TextReset => ReplyKind.TakenBack,
        TurnEvent.EventOneofCase.ToolCall => ReplyKind.ToolCalled,
        TurnEvent.EventOneofCase.ToolResult => ReplyKind.ToolAnswered,
        TurnEvent.EventOneofCase.Cut => ReplyKind.Cut,
        TurnEvent.EventOneofCase.Warning => ReplyKind.Warning,
        TurnEvent.EventOneofCase.Completed => ReplyKind.Completed,
        _ => ReplyKind.Other,
    };
}
