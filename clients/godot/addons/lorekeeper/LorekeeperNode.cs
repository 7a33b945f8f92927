using System;
using System.IO;
using System.Threading.Tasks;
using Godot;
using Google.Protobuf;

namespace Lorekeeper.GodotAddon;

/// <summary>
/// The autoload "Lorekeeper": starts the daemon with the game, brings its answers to the main thread, ends it with the game.
/// </summary>
/// <remarks>
/// Settings are project settings under "lorekeeper/". Everything here may be called from GDScript: strings and
/// dictionaries go in, signals come out, no call waits.
/// </remarks>
[GlobalClass]
public partial class LorekeeperNode : Node
{
    private GameSession? session;

    /// <summary>The daemon answers.</summary>
    [Signal]
    public delegate void StartedEventHandler();

    /// <summary>Something failed: a reason for the program, and what happened and what to do.</summary>
    [Signal]
    public delegate void FailedEventHandler(string reason, string message);

    /// <summary>Everything is kept as it is now.</summary>
    [Signal]
    public delegate void SavedEventHandler(string checkpointId);

    /// <summary>Everything is again what it was.</summary>
    [Signal]
    public delegate void LoadedEventHandler(string checkpointId);

    /// <summary>A role behaves as it was told.</summary>
    [Signal]
    public delegate void RoleSetEventHandler(string roleId);

    /// <summary>The save that NPCs remember in, unless they name one themselves.</summary>
    public string SaveId { get; set; } = "default";

    /// <summary>Whether the daemon answers.</summary>
    public bool IsRunning => session?.Client.IsCompletedSuccessfully ?? false;

    /// <summary>The process id of the daemon; 0 while none runs.</summary>
    public long DaemonProcessId => IsRunning ? session!.Client.Result.Sidecar!.Handshake.ProcessId : 0;

    /// <summary>The session, for C#.</summary>
    public GameSession Session => session ?? throw new InvalidOperationException("Lorekeeper has been stopped.");

    /// <inheritdoc/>
    public override void _EnterTree()
    {
        // A paused game still hears what an NPC has to say.
        ProcessMode = ProcessModeEnum.Always;
        SaveId = Setting("lorekeeper/save_id", "default");
        var perFrame = (int)ProjectSettings.GetSetting("lorekeeper/deliveries_per_frame", 64);
        var frames = new FrameQueue(error => GD.PushError(error.ToString()), perFrame);
        session = GameSession.Start(Options(), null, frames);
        session.Run(Task.FromResult, _ => EmitSignal(SignalName.Started), Fail);
    }

    /// <inheritdoc/>
    public override void _Process(double delta) => session?.Frames.Drain();

    /// <inheritdoc/>
    public override void _ExitTree() => Stop();

    /// <summary>Ends the daemon; also happens when the game ends, crashes, or is stopped in the editor.</summary>
    public void Stop()
    {
        session?.Dispose();
        session = null;
    }

    /// <summary>Keeps everything that all NPCs remember: call it when the player saves. Answers by Saved.</summary>
    public void SaveGame(string name)
    {
        var save = SaveId;
        Session.Run(
            client => client.Save(save).CheckpointAsync(name),
            kept => EmitSignal(SignalName.Saved, kept.Id),
            Fail);
    }

    /// <summary>Makes everything what it was: call it when the player loads. Answers by Loaded.</summary>
    public void LoadGame(string checkpointId)
    {
        var save = SaveId;
        Session.Run(
            client => client.Save(save).RestoreAsync(checkpointId),
            _ => EmitSignal(SignalName.Loaded, checkpointId),
            Fail);
    }

    /// <summary>
    /// Sets how actors of a role behave; the keys are those of Role in role.proto. Answers by RoleSet.
    /// </summary>
    public void PutRole(Godot.Collections.Dictionary role)
    {
        var json = Json.Stringify(role);
        Session.Run(
            async client =>
            {
                var parsed = JsonParser.Default.Parse<V1.Role>(json);
                await client.PutRoleAsync(parsed).ConfigureAwait(false);
                return parsed.RoleId;
            },
            id => EmitSignal(SignalName.RoleSet, id),
            Fail);
    }

    /// <summary>Sets a language-model server; the keys are those of Backend in backend.proto.</summary>
    public void PutBackend(Godot.Collections.Dictionary backend)
    {
        var json = Json.Stringify(backend);
        Session.Run(
            async client =>
            {
                await client.PutBackendAsync(JsonParser.Default.Parse<V1.Backend>(json)).ConfigureAwait(false);
                return true;
            },
            _ => { },
            Fail);
    }

    internal static string ReasonOf(Exception error) =>
        error is LorekeeperCallException { Reason.Length: > 0 } call ? call.Reason : error.GetType().Name;

    private static SidecarOptions Options() => new(DataFolder())
    {
        Command = SidecarOptions.ParseCommand(Setting("lorekeeper/command", "")),
        ProgramFolder = ProgramFolder(),
        StopTimeout = TimeSpan.FromSeconds(3),
    };

    private static string DataFolder() =>
        ProjectSettings.GlobalizePath(Setting("lorekeeper/data_folder", "user://lorekeeper"));

    // In the editor the daemon lies in the project, in an exported game beside the program.
    private static string ProgramFolder()
    {
        var system = OS.GetName().ToLowerInvariant();
        if (OS.HasFeature("editor"))
        {
            return ProjectSettings.GlobalizePath($"res://sidecar/{system}");
        }

        var beside = Path.GetDirectoryName(OS.GetExecutablePath()) ?? "";
        return system == "macos" ? Path.Combine(beside, "..", "Resources") : beside;
    }

    private static string Setting(string name, string fallback) => (string)ProjectSettings.GetSetting(name, fallback);

    private void Fail(Exception error)
    {
        GD.PushError(error.Message);
        EmitSignal(SignalName.Failed, ReasonOf(error), error.Message);
    }
}
