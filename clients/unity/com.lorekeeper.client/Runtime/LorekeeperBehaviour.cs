#nullable enable
using System;
using System.IO;
using UnityEngine;
using UnityEngine.Events;

namespace Lorekeeper.Unity
{
    /// <summary>
    /// Lorekeeper in a game: starts the daemon when it is enabled, brings its answers to the main thread, ends it when it
    /// is disabled. Put one on an object of its own at the root of the first scene; it stays when scenes change.
    /// </summary>
    [DefaultExecutionOrder(-1000)]
    public sealed class LorekeeperBehaviour : MonoBehaviour
    {
        [SerializeField]
        [Tooltip("The save that NPCs remember in.")]
        private string saveId = "default";

        [SerializeField]
        [Tooltip("The program and its arguments; empty means LOREKEEPER_COMMAND, or the built daemon.")]
        private string command = "";

        [SerializeField]
        [Min(1)]
        [Tooltip("How many tokens, ends and tool calls are delivered each frame.")]
        private int deliveriesPerFrame = 64;

        [SerializeField]
        private UnityEvent started = new UnityEvent();

        [SerializeField]
        private UnityEvent<string, string> failed = new UnityEvent<string, string>();

        [SerializeField]
        private UnityEvent<string> saved = new UnityEvent<string>();

        [SerializeField]
        private UnityEvent<string> loaded = new UnityEvent<string>();

        private GameSession? session;

        /// <summary>The one that is enabled; null while none is.</summary>
        public static LorekeeperBehaviour? Instance { get; private set; }

        /// <summary>The daemon answers.</summary>
        public UnityEvent Started => started;

        /// <summary>Something failed: a reason for the program, and what happened and what to do.</summary>
        public UnityEvent<string, string> Failed => failed;

        /// <summary>Everything is kept; the id of the checkpoint.</summary>
        public UnityEvent<string> Saved => saved;

        /// <summary>Everything is again what it was; the id of the checkpoint.</summary>
        public UnityEvent<string> Loaded => loaded;

        /// <summary>The save that NPCs remember in.</summary>
        public string SaveId
        {
            get => saveId;
            set => saveId = value;
        }

        /// <summary>The session, for C#.</summary>
        public GameSession Session =>
            session ?? throw new InvalidOperationException("Put a LorekeeperBehaviour into the scene, and enable it.");

        /// <summary>Keeps everything that all NPCs remember: call it when the player saves.</summary>
        public void SaveGame(string name) => Session.Run(
            client => client.Save(saveId).CheckpointAsync(name), kept => saved.Invoke(kept.Id), Fail);

        /// <summary>Makes everything what it was: call it when the player loads.</summary>
        public void LoadGame(string checkpointId) => Session.Run(
            client => client.Save(saveId).RestoreAsync(checkpointId), _ => loaded.Invoke(checkpointId), Fail);

        /// <summary>Ends the daemon and closes the connection; the editor calls it before the domain reloads.</summary>
        public static void StopAll()
        {
            if (Instance != null)
            {
                Instance.Stop();
            }
        }

        internal static string ReasonOf(Exception error) =>
            error is LorekeeperCallException call && call.Reason.Length > 0 ? call.Reason : error.GetType().Name;

        // Where the domain is not reloaded between plays, statics keep what the last play left in them.
        [RuntimeInitializeOnLoadMethod(RuntimeInitializeLoadType.SubsystemRegistration)]
        private static void Forget() => Instance = null;

        private void OnEnable()
        {
            if (Instance != null && Instance != this)
            {
                Destroy(gameObject);
                return;
            }

            Instance = this;
            DontDestroyOnLoad(gameObject);
            var frames = new FrameQueue(Debug.LogException, deliveriesPerFrame);
            session = GameSession.Start(Options(), new ClientOptions { HttpHandler = Http2.Create }, frames);
            session.Run(client => System.Threading.Tasks.Task.FromResult(client), _ => started.Invoke(), Fail);
        }

        private void Update() => session?.Frames.Drain();

        private void OnDisable() => Stop();

        private void OnApplicationQuit() => Stop();

        private void Stop()
        {
            session?.Dispose();
            session = null;
            if (Instance == this)
            {
                Instance = null;
            }
        }

        private SidecarOptions Options() => new SidecarOptions(Path.Combine(Application.persistentDataPath, "lorekeeper"))
        {
            Command = SidecarOptions.ParseCommand(command),
            ProgramFolder = ProgramFolder(),
            StopTimeout = TimeSpan.FromSeconds(3),
#if ENABLE_IL2CPP && !UNITY_EDITOR
            UseNativeLauncher = true,
#endif
        };

        // A build has the daemon of its platform in StreamingAssets; the editor takes it from where the build step does.
        internal static string ProgramFolder() => Application.platform switch
        {
            RuntimePlatform.WindowsEditor => InProject("windows"),
            RuntimePlatform.LinuxEditor => InProject("linux"),
            RuntimePlatform.OSXEditor => InProject("macos"),
            _ => Application.streamingAssetsPath,
        };

        private static string InProject(string platform) => Path.Combine(Application.dataPath, "..", "Sidecar~", platform);

        private void Fail(Exception error)
        {
            Debug.LogException(error, this);
            failed.Invoke(ReasonOf(error), error.Message);
        }
    }
}
