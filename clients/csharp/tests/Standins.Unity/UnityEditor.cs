#nullable enable
using System;

namespace UnityEditor
{
    public enum PlayModeStateChange
    {
        EnteredEditMode,
        ExitingEditMode,
        EnteredPlayMode,
        ExitingPlayMode,
    }

    public enum BuildTarget
    {
        StandaloneOSX = 2,
        StandaloneWindows64 = 19,
        StandaloneLinux64 = 24,
        Android = 13,
    }

    [AttributeUsage(AttributeTargets.Class)]
    public sealed class InitializeOnLoadAttribute : Attribute
    {
    }

    public static class EditorApplication
    {
        public static event Action<PlayModeStateChange>? playModeStateChanged;

        internal static void Raise(PlayModeStateChange change) => playModeStateChanged?.Invoke(change);
    }

    public static class AssemblyReloadEvents
    {
        public delegate void AssemblyReloadCallback();

        public static event AssemblyReloadCallback? beforeAssemblyReload;

        internal static void Raise() => beforeAssemblyReload?.Invoke();
    }
}

namespace UnityEditor.Build
{
    public interface IOrderedCallback
    {
        int callbackOrder { get; }
    }

    public interface IUnityLinkerProcessor : IOrderedCallback
    {
        string GenerateAdditionalLinkXmlFile(Reporting.BuildReport report, UnityLinker.UnityLinkerBuildPipelineData data);
    }

    public interface IPostprocessBuildWithReport : IOrderedCallback
    {
        void OnPostprocessBuild(Reporting.BuildReport report);
    }
}

namespace UnityEditor.UnityLinker
{
    public sealed class UnityLinkerBuildPipelineData
    {
    }
}

namespace UnityEditor.Build.Reporting
{
    public struct BuildSummary
    {
        public BuildTarget platform { get; internal set; }

        public string outputPath { get; internal set; }
    }

    public sealed class BuildReport : UnityEngine.Object
    {
        public BuildSummary summary { get; internal set; }
    }
}
