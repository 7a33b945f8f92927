using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Lorekeeper;

/// <summary>Writes JSON from dictionaries, lists, strings, numbers, bools and null, without reflection.</summary>
internal static class JsonWriter
{
    internal static string Write(object? value)
    {
        var text = new StringBuilder();
        Append(text, value);
        return text.ToString();
    }

    private static void Append(StringBuilder text, object? value)
    {
        switch (value)
        {
            case null:
                text.Append("null");
                break;
            case bool flag:
                text.Append(flag ? "true" : "false");
                break;
            case string word:
                AppendString(text, word);
                break;
            case IEnumerable<KeyValuePair<string, object?>> members:
                AppendObject(text, members);
                break;
            case IEnumerable<object?> items:
                AppendArray(text, items);
                break;
            default:
                text.Append(System.Convert.ToString(value, CultureInfo.InvariantCulture));
                break;
        }
    }

    private static void AppendObject(StringBuilder text, IEnumerable<KeyValuePair<string, object?>> members)
    {
        var separator = '{';
        foreach (var member in members)
        {
            text.Append(separator);
            AppendString(text, member.Key);
            text.Append(':');
            Append(text, member.Value);
            separator = ',';
        }

        text.Append(separator == '{' ? "{}" : "}");
    }

    private static void AppendArray(StringBuilder text, IEnumerable<object?> items)
    {
        var separator = '[';
        foreach (var item in items)
        {
            text.Append(separator);
            Append(text, item);
            separator = ',';
        }

        text.Append(separator == '[' ? "[]" : "]");
    }

    private static void AppendString(StringBuilder text, string word)
    {
        text.Append('"');
        foreach (var unit in word)
        {
            _ = unit switch
            {
                '"' => text.Append("\\\""),
                '\\' => text.Append("\\\\"),
                < ' ' => text.Append("\\u").Append(((int)unit).ToString("x4", CultureInfo.InvariantCulture)),
                _ => text.Append(unit),
            };
        }

        text.Append('"');
    }
}
