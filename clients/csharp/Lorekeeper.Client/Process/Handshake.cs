using System;
using System.IO;

namespace Lorekeeper;

/// <summary>How to reach a running daemon: what its first line of output tells.</summary>
/// <param name="Address">Host and port, always on this machine, such as "127.0.0.1:43211".</param>
/// <param name="Token">The secret that every call carries; new with every start.</param>
/// <param name="ProcessId">The daemon's process id.</param>
/// <param name="Version">The daemon's version.</param>
/// <param name="DataFolder">The folder that it keeps memory in.</param>
/// <param name="Reused">Whether it ran already and belongs to another process.</param>
public sealed record Handshake(
    string Address, string Token, int ProcessId, string Version, string DataFolder, bool Reused)
{
    /// <summary>The file in a data folder that holds the line while a daemon runs on it.</summary>
    public const string FileName = "daemon.json";

    /// <summary>Reads the line.</summary>
    /// <exception cref="FormatException">It is not the line of a daemon.</exception>
    public static Handshake Parse(string line)
    {
        var members = JsonReader.ReadObject(line);
        string Text(string name) =>
            members.TryGetValue(name, out var value) && value is string text
                ? text
                : throw new FormatException($"The handshake line has no \"{name}\".");

        var pid = members.TryGetValue("pid", out var number) && number is double value ? (int)value : 0;
        var reused = members.TryGetValue("reused", out var flag) && flag is true;
        return new Handshake(Text("address"), Text("token"), pid, Text("version"), Text("data_dir"), reused);
    }

    /// <summary>Reads the line of the daemon that runs on a data folder.</summary>
    /// <exception cref="SidecarStartException">No daemon runs there.</exception>
    public static Handshake FromDataFolder(string dataFolder)
    {
        var file = Path.Combine(dataFolder, FileName);
        try
        {
            return Parse(File.ReadAllText(file)) with { Reused = true };
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException or FormatException)
        {
            throw new SidecarStartException(
                $"No daemon runs on this data folder: {FileName} cannot be read. Start one with LorekeeperClient.StartAsync.",
                cause: error);
        }
    }

    /// <summary>The address and the process id; never the token.</summary>
    public override string ToString() => $"{Address} (process {ProcessId})";
}
