using System;
using System.Collections.Generic;
using System.Linq;
using Godot.Collections;
using Lorekeeper;

namespace Godot;

public enum Error
{
    Ok,
}

public sealed class StringName(string name)
{
    public static implicit operator StringName(string from) => new(from);

    public static implicit operator string(StringName from) => from.ToString();

    public override string ToString() => name;
}

public sealed class NodePath(string path)
{
    public static implicit operator NodePath(string from) => new(from);

    public override string ToString() => path;
}

/// <summary>Godot's root of all objects; here signals are kept, so that a test can read them.</summary>
public class GodotObject
{
    internal List<(string Signal, object?[] Arguments)> Emitted { get; } = [];

    public Error EmitSignal(StringName signal, params Variant[] args)
    {
        Emitted.Add((signal, args.Select(argument => argument.Obj).ToArray()));
        return Error.Ok;
    }

    public class SignalName;
}

/// <summary>Godot's node; here a test calls what the engine calls, and adds the autoload under its path.</summary>
public class Node : GodotObject
{
    public enum ProcessModeEnum
    {
        Inherit,
        Pausable,
        WhenPaused,
        Always,
        Disabled,
    }

    public ProcessModeEnum ProcessMode { get; set; }

    internal static Dictionary<string, Node> Tree { get; } = [];

    public virtual void _EnterTree()
    {
    }

    public virtual void _Ready()
    {
    }

    public virtual void _Process(double delta)
    {
    }

    public virtual void _ExitTree()
    {
    }

    public T GetNode<T>(NodePath path)
        where T : class => (T)(object)Tree[path.ToString()];

    public new class SignalName : GodotObject.SignalName;
}

public static class GD
{
    internal static List<string> Errors { get; } = [];

    public static void PushError(string message) => Errors.Add(message);
}

public static class OS
{
    public static string GetName() => "Linux";

    public static bool HasFeature(string tagName) => tagName == "editor";

    public static string GetExecutablePath() => Environment.ProcessPath ?? "";
}

public static class ProjectSettings
{
    internal static Dictionary<string, Variant> Values { get; } = [];

    public static Variant GetSetting(string name, Variant defaultValue = default) =>
        Values.TryGetValue(name, out var value) ? value : defaultValue;

    public static string GlobalizePath(string path) => path;
}

public static class Json
{
    public static string Stringify(Variant data, string indent = "", bool sortKeys = true, bool fullPrecision = false) =>
        JsonWriter.Write(Plain(data));

    public static Variant ParseString(string jsonString) => Wrapped(JsonReader.Read(jsonString));

    private static object? Plain(Variant data) => data.Obj switch
    {
        Dictionary members => members.ToDictionary(member => member.Key.AsString(), member => Plain(member.Value)),
        Collections.Array items => items.Select(Plain).ToList(),
        var other => other,
    };

    private static Variant Wrapped(object? value)
    {
        if (value is Dictionary<string, object?> members)
        {
            var dictionary = new Dictionary();
            foreach (var member in members)
            {
                dictionary[member.Key] = Wrapped(member.Value);
            }

            return dictionary;
        }

        return new Variant(value);
    }
}
