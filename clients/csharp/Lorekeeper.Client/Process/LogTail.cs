using System;
using System.IO;
using System.Text;
using System.Threading.Tasks;

namespace Lorekeeper;

/// <summary>Reads the daemon's log so that its pipe never fills, and keeps only the end of it.</summary>
internal sealed class LogTail
{
    private const int KeptChars = 4_096;

    private readonly StringBuilder kept = new();

    internal static LogTail Follow(Stream stream)
    {
        var tail = new LogTail();
        _ = tail.ReadAsync(stream);
        return tail;
    }

    internal string Text
    {
        get
        {
            lock (kept)
            {
                return kept.ToString();
            }
        }
    }

    private async Task ReadAsync(Stream stream)
    {
        var buffer = new char[1_024];
        using var reader = new StreamReader(stream, Encoding.UTF8);
        try
        {
            int read;
            while ((read = await reader.ReadAsync(buffer, 0, buffer.Length).ConfigureAwait(false)) > 0)
            {
                Keep(buffer, read);
            }
        }
        catch (Exception error) when (error is IOException or ObjectDisposedException or InvalidOperationException)
        {
            // The program ended while its pipe was read.
        }
    }

    private void Keep(char[] buffer, int length)
    {
        lock (kept)
        {
            kept.Append(buffer, 0, length);
            kept.Remove(0, Math.Max(0, kept.Length - KeptChars));
        }
    }
}
