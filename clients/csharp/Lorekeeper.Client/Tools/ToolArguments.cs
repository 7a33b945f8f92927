using System.Collections.Generic;

namespace Lorekeeper;

/// <summary>What a model calls a tool with.</summary>
public sealed class ToolArguments
{
    private readonly IReadOnlyDictionary<string, object?> members;

    internal ToolArguments(string json)
    {
        Json = json;
        members = string.IsNullOrWhiteSpace(json) ? new Dictionary<string, object?>() : JsonReader.ReadObject(json);
    }

    /// <summary>The arguments as JSON text.</summary>
    public string Json { get; }

    /// <summary>The names that the model gave.</summary>
    public IEnumerable<string> Names => members.Keys;

    /// <summary>A text; the empty text when it is absent or something else.</summary>
    public string Text(string name) => Value(name) as string ?? "";

    /// <summary>A number; null when it is absent or something else.</summary>
    public double? Number(string name) => Value(name) as double?;

    /// <summary>A whole number, cut to one; null when it is absent or something else.</summary>
    public long? Whole(string name) => Number(name) is { } number ? (long)number : null;

    /// <summary>Yes or no; false when it is absent or something else.</summary>
    public bool Flag(string name) => Value(name) is true;

    /// <summary>A list, a dictionary, a text, a double, a bool or null.</summary>
    public object? Value(string name) => members.TryGetValue(name, out var value) ? value : null;
}
