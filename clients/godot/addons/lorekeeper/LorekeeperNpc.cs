using System;
using System.Collections.Generic;
using System.Threading.Tasks;
using Godot;
using Dictionary = Godot.Collections.Dictionary;

namespace Lorekeeper.GodotAddon;

/// <summary>
/// One who remembers and talks. Put it below a character, give it an id, connect its signals, say something.
/// </summary>
/// <remarks>Everything here may be called from GDScript. Signals come on the main thread, a bounded number each frame.</remarks>
[GlobalClass]
public partial class LorekeeperNpc : Node
{
    private readonly Dictionary<long, ToolRequest> waitingTools = [];
    private LorekeeperNode lorekeeper = null!;
    private NpcVoice? voice;
    private long lastCallId;

    /// <summary>The NPC says something more.</summary>
    [Signal]
    public delegate void TokenReceivedEventHandler(string token);

    /// <summary>What was said so far in this turn is taken back: clear the speech bubble.</summary>
    [Signal]
    public delegate void TakenBackEventHandler();

    /// <summary>The reply is complete and stored.</summary>
    [Signal]
    public delegate void CompletedEventHandler(string text);

    /// <summary>A call failed: a reason for the program, and what happened and what to do.</summary>
    [Signal]
    public delegate void FailedEventHandler(string reason, string message);

    /// <summary>The model calls a tool of the game: answer with AnswerTool or FailTool.</summary>
    [Signal]
    public delegate void ToolCalledEventHandler(long callId, string tool, Dictionary arguments);

    /// <summary>What the NPC knows, asked for by ReadMemory or changed by AppendMemory.</summary>
    [Signal]
    public delegate void MemoryReadEventHandler(string text);

    /// <summary>A record was kept.</summary>
    [Signal]
    public delegate void RememberedEventHandler(string recordId);

    /// <summary>What a search found, best first: dictionaries with id, text, tick and score.</summary>
    [Signal]
    public delegate void RecalledEventHandler(Godot.Collections.Array found);

    /// <summary>Who it is; required.</summary>
    [Export]
    public string ActorId { get; set; } = "";

    /// <summary>The behaviour profile.</summary>
    [Export]
    public string RoleId { get; set; } = "";

    /// <summary>The player that the memory is about; empty in a single-player game.</summary>
    [Export]
    public string PlayerId { get; set; } = "";

    /// <summary>Answers without a language model when this is "offline"; empty means what the role says.</summary>
    [Export]
    public string BackendId { get; set; } = "";

    /// <inheritdoc/>
    public override void _EnterTree()
    {
        lorekeeper = GetNode<LorekeeperNode>("/root/Lorekeeper");
        voice = lorekeeper.Session.Voice(Address);
        voice.TokenReceived += token => EmitSignal(SignalName.TokenReceived, token);
        voice.TakenBack += () => EmitSignal(SignalName.TakenBack);
        voice.Completed += text => EmitSignal(SignalName.Completed, text);
        voice.Failed += (reason, message) => EmitSignal(SignalName.Failed, reason, message);
        voice.ToolCalled += PassOn;
    }

    /// <inheritdoc/>
    public override void _ExitTree()
    {
        voice?.Dispose();
        voice = null;
        waitingTools.Clear();
    }

    /// <summary>Says a line; the reply comes by TokenReceived and Completed. Further lines wait for it.</summary>
    public void Say(string text) => Voice.Say(new Line(text) { Backend = BackendId });

    /// <summary>The same at a moment of the game, so that memories are recalled.</summary>
    public void SayAt(string text, long tick) => Voice.Say(new Line(text) { Backend = BackendId, Now = tick });

    /// <summary>Ends the reply that is being given.</summary>
    public void Cancel() => voice?.Cancel();

    /// <summary>
    /// Offers a tool, before the first line is said. The parameters are a JSON schema, or simply names with what they are
    /// for: {"gate": "Which gate."}. A node that left the tree and came back has none.
    /// </summary>
    public void OfferTool(string tool, string description, Dictionary parameters) =>
        Voice.Offer(tool, description, Json.Stringify(parameters.ContainsKey("type") ? parameters : TextSchema(parameters)));

    /// <summary>Tells the model what a tool did.</summary>
    public void AnswerTool(long callId, string result)
    {
        if (waitingTools.Remove(callId, out var request))
        {
            request.Answer(result);
        }
    }

    /// <summary>Tells the model that a tool failed, and why.</summary>
    public void FailTool(long callId, string why)
    {
        if (waitingTools.Remove(callId, out var request))
        {
            request.Fail(why);
        }
    }

    /// <summary>Adds a line to what the NPC knows. Answers by MemoryRead.</summary>
    public void AppendMemory(string text) => Run(
        async npc =>
        {
            await npc.Memory.AppendAsync(text).ConfigureAwait(false);
            return await npc.Memory.ReadAsync().ConfigureAwait(false);
        },
        memory => EmitSignal(SignalName.MemoryRead, memory.Text));

    /// <summary>Reads what the NPC knows. Answers by MemoryRead.</summary>
    public void ReadMemory() =>
        Run(npc => npc.Memory.ReadAsync(), memory => EmitSignal(SignalName.MemoryRead, memory.Text));

    /// <summary>Keeps one memory at a tick of the game. Answers by Remembered.</summary>
    public void Remember(string text, long tick) => Run(
        npc => npc.Records.AddAsync(new Remembrance(text, tick)), id => EmitSignal(SignalName.Remembered, id));

    /// <summary>Finds memories as of a tick of the game. Answers by Recalled.</summary>
    public void Search(string text, long tick) =>
        Run(npc => npc.Records.SearchAsync(text, tick), result => EmitSignal(SignalName.Recalled, Listed(result)));

    private NpcVoice Voice => voice ?? throw new InvalidOperationException("Add this node to the tree first.");

    private static Dictionary TextSchema(Dictionary parameters)
    {
        var properties = new Dictionary();
        var required = new Godot.Collections.Array();
        foreach (var name in parameters.Keys)
        {
            properties[name] = new Dictionary { ["type"] = "string", ["description"] = parameters[name] };
            required.Add(name);
        }

        return new Dictionary { ["type"] = "object", ["properties"] = properties, ["required"] = required };
    }

    private static Godot.Collections.Array Listed(SearchResult result)
    {
        var list = new Godot.Collections.Array();
        foreach (var found in result.Found)
        {
            list.Add(new Dictionary
            {
                ["id"] = found.Id,
                ["text"] = found.Text,
                ["tick"] = found.When.Tick,
                ["score"] = found.Score,
            });
        }

        return list;
    }

    private void PassOn(ToolRequest request)
    {
        waitingTools[++lastCallId] = request;
        var arguments = Json.ParseString(request.Arguments.Json).AsGodotDictionary();
        EmitSignal(SignalName.ToolCalled, lastCallId, request.Name, arguments);
    }

    private V1.Actor Address() => new()
    {
        SaveId = lorekeeper.SaveId,
        ActorId = ActorId,
        RoleId = RoleId,
        PlayerId = PlayerId,
    };

    private void Run<T>(Func<Npc, Task<T>> work, Action<T> done)
    {
        var who = Address();
        lorekeeper.Session.Run(client => work(client.Npc(who)), done, Fail);
    }

    private void Fail(Exception error) =>
        EmitSignal(SignalName.Failed, LorekeeperNode.ReasonOf(error), error.Message);
}
