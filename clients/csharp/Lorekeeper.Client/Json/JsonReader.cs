using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Lorekeeper;

/// <summary>
/// Reads the little JSON that the client meets: the daemon's handshake line and the arguments of tools. Values become
/// dictionaries, lists, strings, doubles, bools and null. It exists so that a Unity game needs no JSON package, and never
/// uses reflection.
/// </summary>
internal sealed class JsonReader
{
    private const int MaxDepth = 128;

    private readonly string text;
    private int at;

    private JsonReader(string text) => this.text = text;

    /// <summary>Reads one value; anything after it but white space is a <see cref="FormatException"/>.</summary>
    internal static object? Read(string text)
    {
        var reader = new JsonReader(text);
        var value = reader.Value(0);
        reader.SkipSpace();
        return reader.at == text.Length ? value : throw reader.Wrong("the end");
    }

    /// <summary>Reads an object; another kind of value is a <see cref="FormatException"/>.</summary>
    internal static IReadOnlyDictionary<string, object?> ReadObject(string text) =>
        Read(text) as Dictionary<string, object?> ?? throw new FormatException("The JSON text is not an object.");

    private object? Value(int depth)
    {
        if (depth > MaxDepth)
        {
            throw new FormatException("The JSON text is nested too deeply.");
        }

        SkipSpace();
        return Peek() switch
        {
            '{' => Object(depth),
            '[' => Array(depth),
            '"' => String(),
            't' => Word("true", true),
            'f' => Word("false", false),
            'n' => Word("null", null),
            _ => Number(),
        };
    }

    private Dictionary<string, object?> Object(int depth)
    {
        var members = new Dictionary<string, object?>();
        Expect('{');
        while (!Closes('}', members.Count))
        {
            SkipSpace();
            var name = String();
            SkipSpace();
            Expect(':');
            members[name] = Value(depth + 1);
        }

        return members;
    }

    private List<object?> Array(int depth)
    {
        var items = new List<object?>();
        Expect('[');
        while (!Closes(']', items.Count))
        {
            items.Add(Value(depth + 1));
        }

        return items;
    }

    private bool Closes(char end, int read)
    {
        SkipSpace();
        if (Peek() == end)
        {
            at++;
            return true;
        }

        if (read > 0)
        {
            Expect(',');
        }

        return false;
    }

    private string String()
    {
        Expect('"');
        var start = at;
        while (Peek() is not ('"' or '\\'))
        {
            at++;
        }

        var plain = text.Substring(start, at - start);
        if (text[at] == '"')
        {
            at++;
            return plain;
        }

        return EscapedString(new StringBuilder(plain));
    }

    private string EscapedString(StringBuilder read)
    {
        while (Peek() != '"')
        {
            var next = text[at++];
            read.Append(next == '\\' ? Escape() : next);
        }

        at++;
        return read.ToString();
    }

    private char Escape()
    {
        var kind = Peek();
        at++;
        return kind switch
        {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\b',
            'f' => '\f',
            'u' => Unit(),
            '"' or '\\' or '/' => kind,
            _ => throw Wrong("an escape"),
        };
    }

    private char Unit()
    {
        const NumberStyles style = NumberStyles.AllowHexSpecifier;
        if (at + 4 > text.Length || !ushort.TryParse(text.AsSpan(at, 4), style, CultureInfo.InvariantCulture, out var unit))
        {
            throw Wrong("four hex digits");
        }

        at += 4;
        return (char)unit;
    }

    private double Number()
    {
        var start = at;
        while (at < text.Length && (char.IsDigit(text[at]) || text[at] is '+' or '-' or '.' or 'e' or 'E'))
        {
            at++;
        }

        const NumberStyles style = NumberStyles.Float;
        return double.TryParse(text.AsSpan(start, at - start), style, CultureInfo.InvariantCulture, out var number)
            ? number
            : throw Wrong("a value");
    }

    private object? Word(string word, object? value)
    {
        if (string.CompareOrdinal(text, at, word, 0, word.Length) != 0)
        {
            throw Wrong(word);
        }

        at += word.Length;
        return value;
    }

    private void SkipSpace()
    {
        while (at < text.Length && (text[at] is ' ' or '\n' or '\r' or '\t'))
        {
            at++;
        }
    }

    private char Peek() => at < text.Length ? text[at] : throw Wrong("more");

    private void Expect(char wanted)
    {
        if (Peek() != wanted)
        {
            throw Wrong($"'{wanted}'");
        }

        at++;
    }

    private FormatException Wrong(string wanted) => new($"The JSON text should have {wanted} at position {at}.");
}
