#if !NET
using System.Runtime.InteropServices;
#endif

namespace Lorekeeper;

/// <summary>The id of this process, also where System.Diagnostics.Process is missing.</summary>
internal static class OwnProcess
{
#if NET
    internal static int Id => System.Environment.ProcessId;
#else
    internal static int Id =>
        RuntimeInformation.IsOSPlatform(OSPlatform.Windows) ? (int)WindowsCalls.GetCurrentProcessId() : PosixCalls.GetPid();
#endif
}
