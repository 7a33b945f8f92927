using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Win32.SafeHandles;

namespace Lorekeeper;

/// <summary>Starts a program by CreateProcess, without a window.</summary>
internal sealed unsafe class WindowsLauncher : ILauncher
{
    public IChildProcess Start(IReadOnlyList<string> command)
    {
        var (inputRead, inputWrite) = OpenPipe(childReads: true);
        var (outputRead, outputWrite) = OpenPipe(childReads: false);
        var (errorRead, errorWrite) = OpenPipe(childReads: false);
        using (inputRead)
        using (outputWrite)
        using (errorWrite)
        {
            var startup = new WindowsCalls.StartupInfo
            {
                Size = sizeof(WindowsCalls.StartupInfo),
                Flags = WindowsCalls.UseStandardHandles,
                Input = inputRead.DangerousGetHandle(),
                Output = outputWrite.DangerousGetHandle(),
                Error = errorWrite.DangerousGetHandle(),
            };
            return new Child(Create(command, startup), inputWrite, outputRead, errorRead);
        }
    }

    // Only the child's end may be inherited: a lifeline that another program also holds would keep the daemon alive.
    private static (SafeFileHandle Read, SafeFileHandle Write) OpenPipe(bool childReads)
    {
        var attributes = new WindowsCalls.SecurityAttributes
        {
            Length = sizeof(WindowsCalls.SecurityAttributes),
            Inherit = 1,
        };
        IntPtr read;
        IntPtr write;
        if (WindowsCalls.CreatePipe(&read, &write, &attributes, 0) == 0)
        {
            throw new SidecarStartException($"No pipe to the daemon could be made: error {Marshal.GetLastWin32Error()}.");
        }

        _ = WindowsCalls.SetHandleInformation(childReads ? write : read, WindowsCalls.InheritHandle, 0);
        return (new SafeFileHandle(read, true), new SafeFileHandle(write, true));
    }

    private static WindowsCalls.ProcessInformation Create(
        IReadOnlyList<string> command, WindowsCalls.StartupInfo startup)
    {
        // The call writes into the text, so it gets an array of its own.
        var line = (WindowsCommandLine.Join(command) + '\0').ToCharArray();
        const uint flags = WindowsCalls.NoWindow | WindowsCalls.UnicodeEnvironment;
        WindowsCalls.ProcessInformation information;
        fixed (char* text = line)
        {
            if (WindowsCalls.CreateProcessW(null, text, null, null, 1, flags, null, null, &startup, &information) == 0)
            {
                throw SidecarStartException.NotStartable(command[0], $"error {Marshal.GetLastWin32Error()}.");
            }
        }

        _ = WindowsCalls.CloseHandle(information.Thread);
        return information;
    }

    private sealed class Child : IChildProcess
    {
        private readonly IntPtr process;
        private readonly SafeFileHandle input;
        private readonly TaskCompletionSource<int> exit = new(TaskCreationOptions.RunContinuationsAsynchronously);

        internal Child(
            WindowsCalls.ProcessInformation information, SafeFileHandle input, SafeFileHandle output, SafeFileHandle errors)
        {
            process = information.Process;
            Id = information.ProcessId;
            this.input = input;
            Output = new FileStream(output, FileAccess.Read, 1, false);
            Errors = new FileStream(errors, FileAccess.Read, 1, false);
            new Thread(Wait) { IsBackground = true, Name = "Lorekeeper daemon watch" }.Start();
        }

        public int Id { get; }

        public Stream Output { get; }

        public Stream Errors { get; }

        public Task<int> Exit => exit.Task;

        public void CloseInput() => input.Dispose();

        public void Kill()
        {
            if (!exit.Task.IsCompleted)
            {
                _ = WindowsCalls.TerminateProcess(process, 1);
            }
        }

        public void Dispose()
        {
            input.Dispose();
            Output.Dispose();
        }

        private void Wait()
        {
            _ = WindowsCalls.WaitForSingleObject(process, WindowsCalls.Forever);
            uint code;
            _ = WindowsCalls.GetExitCodeProcess(process, &code);
            exit.TrySetResult((int)code);
            _ = WindowsCalls.CloseHandle(process);
        }
    }
}
