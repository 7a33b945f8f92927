#nullable enable
using UnityEditor;

namespace Lorekeeper.Unity.Editor
{
    /// <summary>
    /// Closes the channel and ends the daemon when play ends and before the domain reloads: a channel that lives on keeps
    /// the editor from finishing.
    /// </summary>
    [InitializeOnLoad]
    internal static class PlayModeGuard
    {
        static PlayModeGuard()
        {
            EditorApplication.playModeStateChanged += StopWhenPlayEnds;
            AssemblyReloadEvents.beforeAssemblyReload += LorekeeperBehaviour.StopAll;
        }

        private static void StopWhenPlayEnds(PlayModeStateChange change)
        {
            if (change == PlayModeStateChange.ExitingPlayMode)
            {
                LorekeeperBehaviour.StopAll();
            }
        }
    }
}
