using System.Runtime.InteropServices;

namespace Lorekeeper;

/// <summary>
/// Chooses the launcher that starts a program by the system's own calls. Unity's IL2CPP has no System.Diagnostics.Process,
/// so a game built with it needs this one.
/// </summary>
internal static class NativeLauncher
{
    internal static ILauncher ForThisSystem() =>
        RuntimeInformation.IsOSPlatform(OSPlatform.Windows) ? new WindowsLauncher() : new PosixLauncher();
}
