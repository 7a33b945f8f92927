using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Threading.Tasks;

namespace Lorekeeper;

/// <summary>Starts a program by System.Diagnostics.Process.</summary>
internal sealed class ManagedLauncher : ILauncher
{
    public IChildProcess Start(IReadOnlyList<string> command)
    {
        var start = new ProcessStartInfo(command[0])
        {
            UseShellExecute = false,
            CreateNoWindow = true,
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        foreach (var argument in command.Skip(1))
        {
            start.ArgumentList.Add(argument);
        }

        return new Child(start);
    }

    private sealed class Child : IChildProcess
    {
        private readonly Process process;
        private readonly TaskCompletionSource<int> exit = new(TaskCreationOptions.RunContinuationsAsynchronously);

        internal Child(ProcessStartInfo start)
        {
            process = new Process { StartInfo = start, EnableRaisingEvents = true };
            process.Exited += (_, _) => exit.TrySetResult(process.ExitCode);
            try
            {
                process.Start();
            }
            catch (Exception error) when (error is Win32Exception or IOException)
            {
                process.Dispose();
                throw SidecarStartException.NotStartable(start.FileName, error.Message.TrimEnd('.') + ".", error);
            }

            Id = process.Id;
        }

        public int Id { get; }

        public Stream Output => process.StandardOutput.BaseStream;

        public Stream Errors => process.StandardError.BaseStream;

        public Task<int> Exit => exit.Task;

        public void CloseInput()
        {
            try
            {
                process.StandardInput.Close();
            }
            catch (IOException)
            {
                // The program has ended: there is nobody left to tell.
            }
        }

        public void Kill()
        {
            try
            {
                process.Kill();
            }
            catch (Exception error) when (error is InvalidOperationException or Win32Exception)
            {
                // It ended in between.
            }
        }

        public void Dispose() => process.Dispose();
    }
}
