using System;
using System.Collections.Generic;

namespace Lorekeeper;

/// <summary>One parameter of a tool: its name, what it is for, and how to read it from the model's arguments.</summary>
/// <typeparam name="T">The type that the tool's delegate takes.</typeparam>
public sealed class ToolParameter<T>
{
    private readonly Func<ToolArguments, string, T> read;

    internal ToolParameter(string name, Dictionary<string, object?> schema, bool required, Func<ToolArguments, string, T> read)
    {
        Name = name;
        Schema = schema;
        Required = required;
        this.read = read;
    }

    internal string Name { get; }

    internal Dictionary<string, object?> Schema { get; }

    internal bool Required { get; }

    internal T Read(ToolArguments arguments) => read(arguments, Name);
}

/// <summary>Makes parameters of tools. Their JSON schema comes from here, without reflection.</summary>
public static class ToolParameter
{
    /// <summary>A text.</summary>
    public static ToolParameter<string> Text(string name, string description, bool required = true) =>
        new(name, Schema("string", description), required, (arguments, key) => arguments.Text(key));

    /// <summary>A number; 0 when it may be absent and is.</summary>
    public static ToolParameter<double> Number(string name, string description, bool required = true) =>
        new(name, Schema("number", description), required, (arguments, key) => arguments.Number(key) ?? 0);

    /// <summary>A whole number; 0 when it may be absent and is.</summary>
    public static ToolParameter<long> Whole(string name, string description, bool required = true) =>
        new(name, Schema("integer", description), required, (arguments, key) => arguments.Whole(key) ?? 0);

    /// <summary>Yes or no; no when it may be absent and is.</summary>
    public static ToolParameter<bool> Flag(string name, string description, bool required = true) =>
        new(name, Schema("boolean", description), required, (arguments, key) => arguments.Flag(key));

    /// <summary>One of some texts.</summary>
    public static ToolParameter<string> Choice(string name, string description, IReadOnlyList<string> choices, bool required = true)
    {
        var schema = Schema("string", description);
        schema["enum"] = choices;
        return new ToolParameter<string>(name, schema, required, (arguments, key) => arguments.Text(key));
    }

    private static Dictionary<string, object?> Schema(string type, string description) =>
        new() { ["type"] = type, ["description"] = description };
}
