using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Lorekeeper;

/// <summary>
/// A tool that the game offers to a model: a name, what it does, its parameters, and the delegate that runs it. What the
/// delegate returns is what the model is told; what it throws is told as a failure.
/// </summary>
public sealed class NpcTool
{
    private readonly Func<ToolArguments, Task<string>> run;

    private NpcTool(V1.GameTool declaration, Func<ToolArguments, Task<string>> run)
    {
        Declaration = declaration;
        this.run = run;
    }

    /// <summary>The name, 1 to 64 letters, digits, "_" or "-".</summary>
    public string Name => Declaration.Name;

    /// <summary>The JSON schema of the arguments.</summary>
    public string ParametersJson => Declaration.ParametersJson;

    internal V1.GameTool Declaration { get; }

    /// <summary>A tool without parameters.</summary>
    public static NpcTool Create(string name, string description, Func<Task<string>> run) =>
        FromSchema(name, description, Schema(), _ => run());

    /// <summary>A tool with one parameter.</summary>
    public static NpcTool Create<T>(string name, string description, ToolParameter<T> first, Func<T, Task<string>> run) =>
        FromSchema(name, description, Schema(Part(first)), arguments => run(first.Read(arguments)));

    /// <summary>A tool with two parameters.</summary>
    public static NpcTool Create<T1, T2>(
        string name, string description, ToolParameter<T1> first, ToolParameter<T2> second, Func<T1, T2, Task<string>> run) =>
        FromSchema(
            name,
            description,
            Schema(Part(first), Part(second)),
            arguments => run(first.Read(arguments), second.Read(arguments)));

    /// <summary>A tool with three parameters.</summary>
    public static NpcTool Create<T1, T2, T3>(
        string name,
        string description,
        ToolParameter<T1> first,
        ToolParameter<T2> second,
        ToolParameter<T3> third,
        Func<T1, T2, T3, Task<string>> run) =>
        FromSchema(
            name,
            description,
            Schema(Part(first), Part(second), Part(third)),
            arguments => run(first.Read(arguments), second.Read(arguments), third.Read(arguments)));

    /// <summary>A tool whose JSON schema the game gives itself, as text.</summary>
    public static NpcTool FromSchema(
        string name, string description, string parametersJson, Func<ToolArguments, Task<string>> run) =>
        new(new V1.GameTool { Name = name, Description = description, ParametersJson = parametersJson }, run);

    /// <summary>
    /// The same tool, told to change something in the game: never run beside another, never repeated.
    /// </summary>
    public NpcTool Mutating()
    {
        var declaration = Declaration.Clone();
        declaration.Mutating = true;
        return new NpcTool(declaration, run);
    }

    /// <summary>
    /// The same tool with another time to answer than what the role says; zero, or
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>, means without bound.
    /// </summary>
    public NpcTool WithTimeout(TimeSpan timeout)
    {
        var declaration = Declaration.Clone();
        declaration.TimeoutMs = timeout == Timeout.InfiniteTimeSpan ? 0 : (int)timeout.TotalMilliseconds;
        return new NpcTool(declaration, run);
    }

    internal async Task<string> RunAsync(string argumentsJson) =>
        await run(new ToolArguments(argumentsJson)).ConfigureAwait(false)
        ?? throw new InvalidOperationException("The tool answered nothing.");

    private static (string Name, Dictionary<string, object?> Schema, bool Required) Part<T>(ToolParameter<T> parameter) =>
        (parameter.Name, parameter.Schema, parameter.Required);

    private static string Schema(params (string Name, Dictionary<string, object?> Schema, bool Required)[] parts) =>
        JsonWriter.Write(new Dictionary<string, object?>
        {
            ["type"] = "object",
            ["properties"] = parts.ToDictionary(part => part.Name, part => (object?)part.Schema),
            ["required"] = parts.Where(part => part.Required).Select(part => part.Name),
        });
}
