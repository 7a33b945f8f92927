#nullable enable
using System.IO;
using UnityEditor.Build;
using UnityEditor.Build.Reporting;
using UnityEditor.UnityLinker;

namespace Lorekeeper.Unity.Editor
{
    /// <summary>
    /// Gives the package's link.xml to the linker of a build, which looks for such files in Assets and never in packages.
    /// </summary>
    internal sealed class StrippingStep : IUnityLinkerProcessor
    {
        /// <inheritdoc/>
        public int callbackOrder => 0;

        /// <inheritdoc/>
        public string GenerateAdditionalLinkXmlFile(BuildReport report, UnityLinkerBuildPipelineData data) =>
            Path.GetFullPath("Packages/com.lorekeeper.client/Runtime/link.xml");
    }
}
