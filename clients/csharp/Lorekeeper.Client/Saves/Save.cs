using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// One save of the player: everything that all its NPCs remember. A handle without state; making one costs nothing.
/// </summary>
public sealed class Save
{
    private readonly Calls calls;

    internal Save(Calls calls, string id)
    {
        this.calls = calls;
        Id = id;
    }

    /// <summary>The id of the save.</summary>
    public string Id { get; }

    /// <summary>One who remembers in this save.</summary>
    /// <param name="actor">The NPC; empty means that the role itself remembers.</param>
    /// <param name="role">The behaviour profile.</param>
    /// <param name="player">The player that the memory is about; empty in a single-player game.</param>
    /// <param name="topic">A topic that is kept apart; empty when there is none.</param>
    public Npc Npc(string actor, string role = "", string player = "", string topic = "") => new(
        calls, new Actor { SaveId = Id, ActorId = actor, RoleId = role, PlayerId = player, TopicId = topic });

    /// <summary>Keeps everything as it is now: call it when the player saves.</summary>
    public async Task<CheckpointInfo> CheckpointAsync(
        string name = "", GameTime? when = null, CancellationToken cancellation = default)
    {
        var request = new CreateCheckpointRequest { SaveId = Id, Name = name, Moment = when?.ToMoment() };
        var answer = await calls.Saves.CreateCheckpointAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return CheckpointInfo.From(answer.Checkpoint);
    }

    /// <summary>Lists what was kept, newest first.</summary>
    public async Task<IReadOnlyList<CheckpointInfo>> CheckpointsAsync(CancellationToken cancellation = default)
    {
        var found = new List<CheckpointInfo>();
        var request = new ListCheckpointsRequest { SaveId = Id };
        do
        {
            var page = await calls.Saves.ListCheckpointsAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
            found.AddRange(page.Checkpoints.Select(CheckpointInfo.From));
            request = new ListCheckpointsRequest { SaveId = Id, PageToken = page.NextPageToken };
        }
        while (request.PageToken.Length > 0);
        return found;
    }

    /// <summary>
    /// Makes the save what it was, all of it or nothing: call it when the player loads. What it was before is kept too.
    /// </summary>
    /// <returns>The checkpoint that keeps what the save was before.</returns>
    public async Task<CheckpointInfo> RestoreAsync(string checkpointId, CancellationToken cancellation = default)
    {
        var request = new RestoreCheckpointRequest { SaveId = Id, CheckpointId = checkpointId };
        var answer = await calls.Saves.RestoreCheckpointAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return CheckpointInfo.From(answer.Safety);
    }

    /// <summary>Deletes a checkpoint: call it when the player deletes a saved game.</summary>
    /// <returns>Whether there was such a checkpoint.</returns>
    public async Task<bool> DeleteCheckpointAsync(string checkpointId, CancellationToken cancellation = default)
    {
        var request = new DeleteCheckpointRequest { SaveId = Id, CheckpointId = checkpointId };
        var answer = await calls.Saves.DeleteCheckpointAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return answer.Existed;
    }

    /// <summary>Makes a new save from this one as it is now, or from one of its checkpoints.</summary>
    public async Task<Save> ForkAsync(string newId, string checkpointId = "", CancellationToken cancellation = default)
    {
        var request = new ForkSaveRequest { SaveId = Id, NewSaveId = newId, CheckpointId = checkpointId };
        await calls.Saves.ForkSaveAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return new Save(calls, newId);
    }

    /// <summary>Writes the save as one file.</summary>
    public async Task ExportAsync(Stream file, CancellationToken cancellation = default)
    {
        using var call = calls.Saves.ExportSave(new ExportSaveRequest { SaveId = Id }, cancellationToken: cancellation);
        while (await call.ResponseStream.MoveNext(cancellation).ConfigureAwait(false))
        {
            var piece = call.ResponseStream.Current.Chunk.Memory;
            await file.WriteAsync(piece, cancellation).ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Takes in a file that <see cref="ExportAsync"/> wrote. The save must not exist, unless the header says otherwise.
    /// </summary>
    public async Task<ImportSaveResponse> ImportAsync(
        Stream file, Action<ImportHeader>? configure = null, CancellationToken cancellation = default)
    {
        _ = file ?? throw new ArgumentNullException(nameof(file));
        using var call = calls.Saves.ImportSave(cancellationToken: cancellation);
        var header = new ImportHeader { SaveId = Id };
        configure?.Invoke(header);
        await Transfer.SendAsync(call.RequestStream, header, file, cancellation).ConfigureAwait(false);
        return await call.ResponseAsync.ConfigureAwait(false);
    }

    /// <summary>Forgets the save completely, with its checkpoints.</summary>
    /// <returns>Whether there was such a save.</returns>
    public async Task<bool> EraseAsync(CancellationToken cancellation = default)
    {
        var request = new EraseSaveRequest { SaveId = Id };
        var answer = await calls.Saves.EraseSaveAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return answer.Existed;
    }
}
