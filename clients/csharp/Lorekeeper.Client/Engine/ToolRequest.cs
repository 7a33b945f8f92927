using System.Threading.Tasks;

namespace Lorekeeper;

/// <summary>A call of one of the game's tools that waits for its answer. Answer it once, from any thread.</summary>
public sealed class ToolRequest
{
    private readonly TaskCompletionSource<string> answer = new(TaskCreationOptions.RunContinuationsAsynchronously);

    internal ToolRequest(string name, ToolArguments arguments)
    {
        Name = name;
        Arguments = arguments;
    }

    /// <summary>The tool.</summary>
    public string Name { get; }

    /// <summary>What it is called with.</summary>
    public ToolArguments Arguments { get; }

    internal Task<string> Answered => answer.Task;

    /// <summary>Tells the model what the tool did.</summary>
    public void Answer(string result) => answer.TrySetResult(result);

    /// <summary>Tells the model that the tool failed, and why.</summary>
    public void Fail(string why) => answer.TrySetException(new ToolFailedException(why));

    private sealed class ToolFailedException(string why) : System.Exception(why);
}
