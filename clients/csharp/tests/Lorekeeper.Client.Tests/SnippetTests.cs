using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text.RegularExpressions;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Xunit;

namespace Lorekeeper.Tests;

/// <summary>Whatever C# the pages show compiles against the client and the engines' layers.</summary>
public sealed partial class SnippetTests
{
    private static readonly string[] Pages =
    [
        "README.md", "docs/csharp.md", "clients/csharp/README.md", "clients/godot/README.md",
        "clients/unity/com.lorekeeper.client/README.md",
    ];

    public static TheoryData<string, int> Snippets()
    {
        var data = new TheoryData<string, int>();
        foreach (var page in Pages)
        {
            for (var number = 0; number < Read(page).Count; number++)
            {
                data.Add(page, number);
            }
        }

        return data;
    }

    [Theory]
    [MemberData(nameof(Snippets))]
    public void A_snippet_compiles(string page, int number)
    {
        var source = Read(page)[number];
        var compilation = CSharpCompilation.Create(
            "Snippet",
            [Parse(source), Parse(Usings)],
            References(),
            new CSharpCompilationOptions(Kind(source), nullableContextOptions: NullableContextOptions.Enable));
        var errors = compilation.GetDiagnostics().Where(one => one.Severity == DiagnosticSeverity.Error);
        Assert.True(!errors.Any(), string.Join('\n', errors) + "\n" + source);
    }

    // What a project with implicit usings has, as the console templates make it.
    private const string Usings =
        "global using System; global using System.Collections.Generic; global using System.IO; global using System.Linq;"
        + "global using System.Threading; global using System.Threading.Tasks;";

    private static SyntaxTree Parse(string source) =>
        CSharpSyntaxTree.ParseText(source, new CSharpParseOptions(LanguageVersion.CSharp12));

    private static OutputKind Kind(string source) =>
        source.Contains(" class ") ? OutputKind.DynamicallyLinkedLibrary : OutputKind.ConsoleApplication;

    private static IEnumerable<MetadataReference> References() =>
        ((string)AppContext.GetData("TRUSTED_PLATFORM_ASSEMBLIES")!)
            .Split(Path.PathSeparator)
            .Select(path => MetadataReference.CreateFromFile(path));

    private static List<string> Read(string page) =>
        Fence().Matches(File.ReadAllText(Path.Combine(Places.Repository, page)))
            .Select(match => match.Groups[1].Value)
            .ToList();

    [GeneratedRegex("```csharp\n(.*?)```", RegexOptions.Singleline)]
    private static partial Regex Fence();
}
