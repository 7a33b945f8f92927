using System;
using System.Collections.Generic;
using System.IO;
using System.Threading.Tasks;

namespace Lorekeeper;

/// <summary>A program that was started: its pipes, its end. Disposing it frees handles and ends nothing.</summary>
internal interface IChildProcess : IDisposable
{
    int Id { get; }

    Stream Output { get; }

    Stream Errors { get; }

    /// <summary>Ends with the exit code once the program has ended.</summary>
    Task<int> Exit { get; }

    /// <summary>Closes standard input, the lifeline: the program ends itself.</summary>
    void CloseInput();

    void Kill();
}

/// <summary>Starts a program hidden, with pipes for its three streams.</summary>
internal interface ILauncher
{
    IChildProcess Start(IReadOnlyList<string> command);
}
