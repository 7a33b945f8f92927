using System;
using System.Runtime.InteropServices;

namespace Lorekeeper;

/// <summary>The few calls of Windows that starting a program takes. Only plain numbers and pointers pass.</summary>
internal static unsafe class WindowsCalls
{
    internal const uint InheritHandle = 1;
    internal const uint UseStandardHandles = 0x100;
    internal const uint NoWindow = 0x0800_0000;
    internal const uint UnicodeEnvironment = 0x400;
    internal const uint Forever = uint.MaxValue;

    private const string Kernel = "kernel32";

    [DllImport(Kernel)]
    internal static extern uint GetCurrentProcessId();

    [DllImport(Kernel, SetLastError = true)]
    internal static extern int CreatePipe(IntPtr* read, IntPtr* write, SecurityAttributes* attributes, uint size);

    [DllImport(Kernel, SetLastError = true)]
    internal static extern int SetHandleInformation(IntPtr handle, uint mask, uint flags);

    [DllImport(Kernel, SetLastError = true)]
    internal static extern int CreateProcessW(
        char* program,
        char* commandLine,
        void* processAttributes,
        void* threadAttributes,
        int inheritHandles,
        uint flags,
        void* environment,
        char* folder,
        StartupInfo* startup,
        ProcessInformation* information);

    [DllImport(Kernel)]
    internal static extern uint WaitForSingleObject(IntPtr handle, uint milliseconds);

    [DllImport(Kernel)]
    internal static extern int GetExitCodeProcess(IntPtr process, uint* code);

    [DllImport(Kernel)]
    internal static extern int TerminateProcess(IntPtr process, uint code);

    [DllImport(Kernel)]
    internal static extern int CloseHandle(IntPtr handle);

    [StructLayout(LayoutKind.Sequential)]
    internal struct SecurityAttributes
    {
        internal int Length;
        internal IntPtr Descriptor;
        internal int Inherit;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct StartupInfo
    {
        internal int Size;
        internal IntPtr Reserved;
        internal IntPtr Desktop;
        internal IntPtr Title;
        internal int X;
        internal int Y;
        internal int Width;
        internal int Height;
        internal int Columns;
        internal int Rows;
        internal int Fill;
        internal uint Flags;
        internal short ShowWindow;
        internal short ReservedBytes;
        internal IntPtr ReservedPointer;
        internal IntPtr Input;
        internal IntPtr Output;
        internal IntPtr Error;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct ProcessInformation
    {
        internal IntPtr Process;
        internal IntPtr Thread;
        internal int ProcessId;
        internal int ThreadId;
    }
}
