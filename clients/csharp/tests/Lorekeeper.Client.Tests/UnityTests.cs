using System;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;
using System.Xml.Linq;
using Lorekeeper.Unity;
using Lorekeeper.Unity.Editor;
using UnityEditor;
using UnityEngine;
using Xunit;

namespace Lorekeeper.Tests;

/// <summary>
/// The Unity package against stand-ins of the engine's types and a real daemon. The engine itself was not here.
/// </summary>
public sealed class UnityTests(DaemonFixture daemon) : IAsyncLifetime
{
    private readonly LorekeeperBehaviour lorekeeper = new() { SaveId = "unity" };
    private readonly NpcBehaviour mira = new() { ActorId = "mira", RoleId = "UnityTest", BackendId = "offline" };
    private int frameThread;

    public async ValueTask InitializeAsync()
    {
        Application.persistentDataPath = Places.NewDataFolder();
        Environment.SetEnvironmentVariable("LOREKEEPER_COMMAND", string.Join(' ', Places.DaemonCommand));
        var started = false;
        lorekeeper.Started.AddListener(() => started = true);
        Send(lorekeeper, "OnEnable");
        await FramesUntil(() => started, "Started");
    }

    public ValueTask DisposeAsync()
    {
        Send(mira, "OnDisable");
        Send(lorekeeper, "OnDisable");
        return default;
    }

    [Fact]
    public async Task An_npc_remembers_over_http2_through_the_handler_of_the_game()
    {
        string? known = null;
        mira.Remember("The player spared the wolf.");
        await FramesUntil(
            () =>
            {
                mira.ReadMemory(text => known = text);
                return known == "The player spared the wolf.";
            },
            "Remembering");
    }

    [Fact]
    public async Task The_end_of_play_ends_the_daemon()
    {
        var process = Process();
        LoadEditor();
        EditorApplication.Raise(PlayModeStateChange.ExitingPlayMode);
        await Eventually.True(() => Eventually.IsGone(process), TimeSpan.FromSeconds(30), "The end of the daemon");
        Assert.Null(LorekeeperBehaviour.Instance);
    }

    [Fact]
    public async Task A_domain_reload_ends_the_daemon()
    {
        var process = Process();
        LoadEditor();
        AssemblyReloadEvents.Raise();
        await Eventually.True(() => Eventually.IsGone(process), TimeSpan.FromSeconds(30), "The end of the daemon");
    }

    [Fact]
    public void A_second_one_in_a_scene_steps_back()
    {
        var second = new GameObject("Second").AddComponent<LorekeeperBehaviour>();
        Send(second, "OnEnable");
        Assert.Same(lorekeeper, LorekeeperBehaviour.Instance);
        Assert.Throws<InvalidOperationException>(() => second.Session);
    }

    [Fact]
    public async Task An_npc_answers_by_events_on_the_main_thread()
    {
        daemon.Needs("turns");
        string? reply = null;
        var thread = 0;
        mira.Completed.AddListener(text => (reply, thread) = (text, Environment.CurrentManagedThreadId));
        mira.Say("Hello?");
        await FramesUntil(() => reply is not null && thread == frameThread, "The reply");
    }

    [Theory]
    [InlineData(BuildTarget.StandaloneLinux64, "/b/game.x86_64", "/b/game_Data/StreamingAssets")]
    [InlineData(BuildTarget.StandaloneWindows64, "/b/game.exe", "/b/game_Data/StreamingAssets")]
    [InlineData(BuildTarget.StandaloneOSX, "/b/game.app", "/b/game.app/Contents/Resources/Data/StreamingAssets")]
    public void A_build_gets_its_daemon_where_the_game_looks_for_it(BuildTarget target, string output, string folder) =>
        Assert.Equal(folder, SidecarBuildStep.StreamingAssets(target, output));

    [Fact]
    public void A_build_copies_the_daemon_with_all_its_folders()
    {
        var root = Places.NewDataFolder();
        Directory.CreateDirectory(Path.Combine(root, "from", "inner"));
        File.WriteAllText(Path.Combine(root, "from", "inner", "file"), "content");
        SidecarBuildStep.Copy(Path.Combine(root, "from"), Path.Combine(root, "to"));
        Assert.Equal("content", File.ReadAllText(Path.Combine(root, "to", "inner", "file")));
    }

    [Theory]
    [InlineData(RuntimePlatform.LinuxEditor, "/project/Sidecar~/linux")]
    [InlineData(RuntimePlatform.WindowsEditor, "/project/Sidecar~/windows")]
    [InlineData(RuntimePlatform.OSXEditor, "/project/Sidecar~/macos")]
    [InlineData(RuntimePlatform.LinuxPlayer, "/build/StreamingAssets")]
    public void A_game_looks_for_its_daemon_where_the_page_says_to_put_it(RuntimePlatform platform, string folder)
    {
        Application.dataPath = "/project/Assets";
        Application.streamingAssetsPath = "/build/StreamingAssets";
        Application.platform = platform;
        Assert.Equal(folder, Path.GetFullPath(LorekeeperBehaviour.ProgramFolder()));
    }

    [Fact]
    public void What_stripping_must_leave_is_handed_to_the_linker()
    {
        var file = new StrippingStep().GenerateAdditionalLinkXmlFile(new(), new());
        var inPackage = Path.GetRelativePath(Path.GetFullPath("Packages/com.lorekeeper.client"), file);
        var assemblies = XDocument.Load(Path.Combine(Places.Repository, "clients/unity/com.lorekeeper.client", inPackage))
            .Root!.Elements("assembly").Select(one => one.Attribute("fullname")!.Value);
        Assert.Contains("Lorekeeper.Client", assemblies);
        Assert.Contains("Google.Protobuf", assemblies);
    }

    // The editor does this for every class with [InitializeOnLoad].
    private static void LoadEditor() => RuntimeHelpers.RunClassConstructor(typeof(PlayModeGuard).TypeHandle);

    private static void Send(object behaviour, string message) =>
        behaviour.GetType().GetMethod(message, BindingFlags.Instance | BindingFlags.NonPublic)!.Invoke(behaviour, null);

    private int Process() => lorekeeper.Session.Client.Result.Sidecar!.Handshake.ProcessId;

    private Task FramesUntil(Func<bool> condition, string what) => Eventually.True(
        () =>
        {
            frameThread = Environment.CurrentManagedThreadId;
            Send(lorekeeper, "Update");
            return condition();
        },
        TimeSpan.FromSeconds(60),
        what);
}
