#nullable enable
using System.IO;
using UnityEditor;
using UnityEditor.Build;
using UnityEditor.Build.Reporting;
using UnityEngine;

namespace Lorekeeper.Unity.Editor
{
    /// <summary>
    /// Puts the built daemon into StreamingAssets of a finished build: Sidecar~/windows, Sidecar~/linux or Sidecar~/macos
    /// beside the folder Assets, each with the folder "lorekeeper" in it. As a build step and not as an asset, so that each
    /// build has the daemon of its own platform alone.
    /// </summary>
    internal sealed class SidecarBuildStep : IPostprocessBuildWithReport
    {
        private const string Folder = "lorekeeper";

        /// <inheritdoc/>
        public int callbackOrder => 0;

        /// <inheritdoc/>
        public void OnPostprocessBuild(BuildReport report)
        {
            var platform = PlatformOf(report.summary.platform);
            if (platform == null)
            {
                Debug.LogWarning("Lorekeeper runs on Windows, macOS and Linux only; this build has no daemon.");
                return;
            }

            var source = Path.Combine(Application.dataPath, "..", "Sidecar~", platform, Folder);
            if (!Directory.Exists(source))
            {
                Debug.LogError($"Lorekeeper: there is no built daemon in {source}; the game will not find one.");
                return;
            }

            Copy(source, Path.Combine(StreamingAssets(report.summary.platform, report.summary.outputPath), Folder));
        }

        internal static string? PlatformOf(BuildTarget target) => target switch
        {
            BuildTarget.StandaloneWindows64 => "windows",
            BuildTarget.StandaloneLinux64 => "linux",
            BuildTarget.StandaloneOSX => "macos",
            _ => null,
        };

        internal static string StreamingAssets(BuildTarget target, string outputPath) =>
            target == BuildTarget.StandaloneOSX
                ? Path.Combine(outputPath, "Contents", "Resources", "Data", "StreamingAssets")
                : Path.Combine(
                    Path.GetDirectoryName(outputPath) ?? "",
                    Path.GetFileNameWithoutExtension(outputPath) + "_Data",
                    "StreamingAssets");

        internal static void Copy(string source, string target)
        {
            Directory.CreateDirectory(target);
            foreach (var file in Directory.GetFiles(source))
            {
                File.Copy(file, Path.Combine(target, Path.GetFileName(file)), true);
            }

            foreach (var folder in Directory.GetDirectories(source))
            {
                Copy(folder, Path.Combine(target, Path.GetFileName(folder)));
            }
        }
    }
}
