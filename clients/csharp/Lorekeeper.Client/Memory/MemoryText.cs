namespace Lorekeeper;

/// <summary>What an NPC knows, as it is stored.</summary>
/// <param name="Text">The whole text; empty when nothing is stored.</param>
/// <param name="Version">Its version; 0 when nothing was ever stored. Give it to an edit that must not overwrite a newer one.</param>
public sealed record MemoryText(string Text, int Version);

/// <summary>What a batch of edits did.</summary>
/// <param name="Version">The version now.</param>
/// <param name="Changed">Whether anything changed.</param>
public sealed record EditResult(int Version, bool Changed);

/// <summary>One version of what an NPC knows.</summary>
/// <param name="Version">The number.</param>
/// <param name="Action">What made it, such as "Append".</param>
/// <param name="Length">The length of the text in code points.</param>
public sealed record MemoryVersion(int Version, string Action, int Length);
