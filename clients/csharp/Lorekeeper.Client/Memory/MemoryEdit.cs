using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>One edit of a memory text. Texts are compared exactly; there are no patterns.</summary>
public sealed class MemoryEdit
{
    private MemoryEdit(Edit edit) => Wire = edit;

    internal Edit Wire { get; }

    /// <summary>Replaces the whole text.</summary>
    public static MemoryEdit Write(string text) => new(new Edit { Write = new Write { Content = text } });

    /// <summary>Adds a line at the end, unless a line says it already.</summary>
    public static MemoryEdit Append(string text) => new(new Edit { Append = new Append { Content = text } });

    /// <summary>Empties the text; its versions stay.</summary>
    public static MemoryEdit Clear() => new(new Edit { Clear = new Clear() });

    /// <summary>Replaces the first occurrence of a text, or all of them.</summary>
    public static MemoryEdit Replace(string text, string by, bool all = false) =>
        new(new Edit { StrReplace = new StrReplace { OldText = text, NewText = by, ReplaceAll = all } });

    /// <summary>Adds a text before a line, counted from 1.</summary>
    public static MemoryEdit InsertAtLine(string text, int line) =>
        new(new Edit { Insert = new Insert { Content = text, Line = line } });

    /// <summary>Adds a text after the line that holds another text.</summary>
    public static MemoryEdit InsertAfter(string text, string anchor) =>
        new(new Edit { Insert = new Insert { Content = text, Anchor = anchor } });

    /// <summary>Removes the first occurrence of a text, or all of them.</summary>
    public static MemoryEdit Delete(string text, bool all = false) =>
        new(new Edit { Delete = new Delete { OldText = text, ReplaceAll = all } });

    /// <summary>Renames a label such as "Crafts:".</summary>
    public static MemoryEdit Rename(string label, string newLabel) =>
        new(new Edit { Rename = new Rename { OldLabel = label, NewLabel = newLabel } });
}
