using System.Collections.Generic;
using System.Linq;
using System.Text;

namespace Lorekeeper;

/// <summary>Joins arguments into the one text that a Windows program splits again, as the C runtime splits it.</summary>
internal static class WindowsCommandLine
{
    internal static string Join(IEnumerable<string> arguments) => string.Join(" ", arguments.Select(Quote));

    private static string Quote(string argument)
    {
        if (argument.Length > 0 && !argument.Any(unit => unit is ' ' or '\t' or '\n' or '\v' or '"'))
        {
            return argument;
        }

        var quoted = new StringBuilder("\"");
        var slashes = 0;
        foreach (var unit in argument)
        {
            // Backslashes count only before a quotation mark: there each is doubled.
            quoted.Append('\\', unit == '"' ? slashes + 1 : 0);
            slashes = unit == '\\' ? slashes + 1 : 0;
            quoted.Append(unit);
        }

        return quoted.Append('\\', slashes).Append('"').ToString();
    }
}
