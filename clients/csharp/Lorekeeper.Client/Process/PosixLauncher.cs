using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Win32.SafeHandles;

namespace Lorekeeper;

/// <summary>Starts a program by posix_spawn, on Linux and macOS.</summary>
internal sealed unsafe class PosixLauncher : ILauncher
{
    // glibc's structure has 80 bytes, that of macOS is one pointer.
    private const int ActionsSize = 256;

    public IChildProcess Start(IReadOnlyList<string> command)
    {
        var (inputRead, inputWrite) = OpenPipe();
        var (outputRead, outputWrite) = OpenPipe();
        var (errorRead, errorWrite) = OpenPipe();
        using (inputRead)
        using (outputWrite)
        using (errorWrite)
        {
            var id = Spawn(command, [Number(inputRead), Number(outputWrite), Number(errorWrite)]);
            return new Child(id, inputWrite, outputRead, errorRead);
        }
    }

    // Both ends are closed in any other program that the game starts: one that kept the lifeline open would keep the
    // daemon alive. Between the two calls another thread could start one all the same; macOS has no call that does both.
    private static (SafeFileHandle Read, SafeFileHandle Write) OpenPipe()
    {
        var ends = stackalloc int[2];
        if (PosixCalls.Pipe(ends) != 0)
        {
            throw new SidecarStartException($"No pipe to the daemon could be made: error {Marshal.GetLastWin32Error()}.");
        }

        for (var end = 0; end < 2; end++)
        {
            _ = PosixCalls.Control(ends[end], PosixCalls.SetDescriptorFlags, PosixCalls.CloseOnExec);
        }

        return (new SafeFileHandle((IntPtr)ends[0], true), new SafeFileHandle((IntPtr)ends[1], true));
    }

    private static int Number(SafeFileHandle handle) => (int)handle.DangerousGetHandle();

    private static int Spawn(IReadOnlyList<string> command, int[] streams)
    {
        using var arguments = new CStrings(command);
        using var environment = new CStrings(Environment.GetEnvironmentVariables()
            .Cast<DictionaryEntry>()
            .Select(variable => $"{variable.Key}={variable.Value}"));
        var actions = stackalloc byte[ActionsSize];
        _ = PosixCalls.InitActions(actions);
        for (var stream = 0; stream < streams.Length; stream++)
        {
            _ = PosixCalls.AddDuplicate(actions, streams[stream], stream);
        }

        int id;
        var error = PosixCalls.Spawn(&id, arguments.First, actions, null, arguments.Pointer, environment.Pointer);
        _ = PosixCalls.DestroyActions(actions);
        return error == 0
            ? id
            : throw SidecarStartException.NotStartable(command[0], $"error {error}.");
    }

    /// <summary>An array of C strings that ends with null, in memory that the collector leaves alone.</summary>
    private sealed class CStrings : IDisposable
    {
        private readonly IntPtr[] strings;
        private readonly IntPtr array;

        internal CStrings(IEnumerable<string> texts)
        {
            strings = texts.Select(Copy).Append(IntPtr.Zero).ToArray();
            array = Marshal.AllocHGlobal(strings.Length * IntPtr.Size);
            Marshal.Copy(strings, 0, array, strings.Length);
        }

        internal byte** Pointer => (byte**)array;

        internal byte* First => (byte*)strings[0];

        public void Dispose()
        {
            foreach (var text in strings)
            {
                Marshal.FreeHGlobal(text);
            }

            Marshal.FreeHGlobal(array);
        }

        private static IntPtr Copy(string text)
        {
            var bytes = Encoding.UTF8.GetBytes(text + '\0');
            var memory = Marshal.AllocHGlobal(bytes.Length);
            Marshal.Copy(bytes, 0, memory, bytes.Length);
            return memory;
        }
    }

    private sealed class Child : IChildProcess
    {
        private readonly SafeFileHandle input;
        private readonly TaskCompletionSource<int> exit = new(TaskCreationOptions.RunContinuationsAsynchronously);

        internal Child(int id, SafeFileHandle input, SafeFileHandle output, SafeFileHandle errors)
        {
            Id = id;
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
                _ = PosixCalls.Kill(Id, PosixCalls.KillSignal);
            }
        }

        public void Dispose()
        {
            input.Dispose();
            Output.Dispose();
        }

        private void Wait()
        {
            int status;
            _ = PosixCalls.WaitFor(Id, &status, 0);
            var signal = status & 0x7f;
            exit.TrySetResult(signal == 0 ? (status >> 8) & 0xff : 128 + signal);
        }
    }
}
