using System.Runtime.InteropServices;

namespace Lorekeeper;

/// <summary>
/// The few calls of the C library that starting a program takes, on Linux and macOS. Only plain numbers and pointers
/// pass.
/// </summary>
internal static unsafe class PosixCalls
{
    internal const int SetDescriptorFlags = 2;
    internal const int CloseOnExec = 1;
    internal const int KillSignal = 9;

    private const string C = "libc";

    [DllImport(C, EntryPoint = "getpid")]
    internal static extern int GetPid();

    [DllImport(C, EntryPoint = "pipe", SetLastError = true)]
    internal static extern int Pipe(int* ends);

    // The argument is a variable one in C. On Apple silicon those lie on the stack, elsewhere in the third register: it is
    // given in both places, with what fills the registers between.
    internal static int Control(int descriptor, int command, nint argument) =>
        Control(descriptor, command, argument, 0, 0, 0, 0, 0, argument);

    [DllImport(C, EntryPoint = "fcntl", SetLastError = true)]
    private static extern int Control(
        int descriptor, int command, nint third, nint fourth, nint fifth, nint sixth, nint seventh, nint eighth, nint onStack);

    [DllImport(C, EntryPoint = "kill")]
    internal static extern int Kill(int process, int signal);

    [DllImport(C, EntryPoint = "waitpid", SetLastError = true)]
    internal static extern int WaitFor(int process, int* status, int options);

    [DllImport(C, EntryPoint = "posix_spawn_file_actions_init")]
    internal static extern int InitActions(byte* actions);

    [DllImport(C, EntryPoint = "posix_spawn_file_actions_destroy")]
    internal static extern int DestroyActions(byte* actions);

    [DllImport(C, EntryPoint = "posix_spawn_file_actions_adddup2")]
    internal static extern int AddDuplicate(byte* actions, int from, int to);

    [DllImport(C, EntryPoint = "posix_spawnp")]
    internal static extern int Spawn(
        int* process, byte* program, byte* actions, void* attributes, byte** arguments, byte** environment);
}
