using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>One message of a conversation.</summary>
/// <param name="Role">"user" for the player or the game, "assistant" for the NPC.</param>
/// <param name="Text">What was said.</param>
/// <param name="When">When in the game; null when that is not told.</param>
/// <param name="Speaker">Who speaks, in the words of the game.</param>
public sealed record Utterance(string Role, string Text, GameTime? When = null, string Speaker = "")
{
    /// <summary>Something that the player said.</summary>
    public static Utterance Player(string text, GameTime? when = null) => new("user", text, when);

    /// <summary>Something that the NPC said.</summary>
    public static Utterance Npc(string text, GameTime? when = null) => new("assistant", text, when);

    internal static Utterance From(ChatMessage message) =>
        new(message.Role, message.Content, GameTime.From(message.Moment), message.Speaker);

    internal NewMessage ToMessage() =>
        new() { Role = Role, Content = Text, Moment = When?.ToMoment(), Speaker = Speaker };
}
