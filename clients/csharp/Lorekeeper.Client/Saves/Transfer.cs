using System;
using System.IO;
using System.Threading;
using System.Threading.Tasks;
using Google.Protobuf;
using Grpc.Core;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>Sends a file in pieces.</summary>
internal static class Transfer
{
    private const int PieceBytes = 256 * 1024;

    internal static async Task SendAsync(
        IClientStreamWriter<ImportSaveRequest> stream, ImportHeader header, Stream file, CancellationToken cancellation)
    {
        try
        {
            await stream.WriteAsync(new ImportSaveRequest { Header = header }, cancellation).ConfigureAwait(false);
            var piece = new byte[PieceBytes];
            int read;
            while ((read = await file.ReadAsync(piece, cancellation).ConfigureAwait(false)) > 0)
            {
                var chunk = ByteString.CopyFrom(piece, 0, read);
                await stream.WriteAsync(new ImportSaveRequest { Chunk = chunk }, cancellation).ConfigureAwait(false);
            }

            await stream.CompleteAsync().ConfigureAwait(false);
        }
        catch (Exception error) when (error is RpcException or InvalidOperationException)
        {
            // The call ended early, by the daemon or by the game: its answer, which the caller reads next, says why.
        }
    }
}
