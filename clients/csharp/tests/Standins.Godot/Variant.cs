using System;
using Godot.Collections;

namespace Godot;

/// <summary>Godot's value of any kind: here it simply holds the object.</summary>
public readonly struct Variant(object? obj)
{
    public object? Obj { get; } = obj;

    public static implicit operator Variant(string from) => new(from);

    public static implicit operator Variant(bool from) => new(from);

    public static implicit operator Variant(int from) => new((long)from);

    public static implicit operator Variant(long from) => new(from);

    public static implicit operator Variant(double from) => new(from);

    public static implicit operator Variant(Dictionary from) => new(from);

    public static implicit operator Variant(Collections.Array from) => new(from);

    public static explicit operator string(Variant from) => from.AsString();

    public static explicit operator int(Variant from) => (int)Convert.ToInt64(from.Obj);

    public string AsString() => Obj as string ?? "";

    public Dictionary AsGodotDictionary() => Obj as Dictionary ?? [];

    public override string ToString() => AsString();
}
