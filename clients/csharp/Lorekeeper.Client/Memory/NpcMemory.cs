using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>The one text that an NPC knows. The game edits it, and so does a model, by its memory tool.</summary>
public sealed class NpcMemory
{
    private readonly Calls calls;
    private readonly Actor actor;

    internal NpcMemory(Calls calls, Actor actor)
    {
        this.calls = calls;
        this.actor = actor;
    }

    /// <summary>Reads it, now or as it was in a version that is still kept.</summary>
    public async Task<MemoryText> ReadAsync(int? version = null, CancellationToken cancellation = default)
    {
        var request = new GetDocumentRequest { Actor = actor };
        if (version is { } wanted)
        {
            request.Version = wanted;
        }

        var answer = await calls.Memory.GetDocumentAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return new MemoryText(answer.Text, answer.Version);
    }

    /// <summary>Adds a line at the end, unless a line says it already.</summary>
    public Task<EditResult> AppendAsync(string text, CancellationToken cancellation = default) =>
        EditAsync([MemoryEdit.Append(text)], null, cancellation);

    /// <summary>Replaces the whole text.</summary>
    public Task<EditResult> WriteAsync(string text, CancellationToken cancellation = default) =>
        EditAsync([MemoryEdit.Write(text)], null, cancellation);

    /// <summary>Replaces the first occurrence of a text.</summary>
    /// <exception cref="EditFailedException">The text is not there; the exception has the nearest lines.</exception>
    public Task<EditResult> ReplaceAsync(string text, string by, CancellationToken cancellation = default) =>
        EditAsync([MemoryEdit.Replace(text, by)], null, cancellation);

    /// <summary>Empties the text; its versions stay.</summary>
    public Task<EditResult> ClearAsync(CancellationToken cancellation = default) =>
        EditAsync([MemoryEdit.Clear()], null, cancellation);

    /// <summary>Makes several edits, all or none, as one version.</summary>
    /// <param name="edits">The edits, in order; 1 to 256.</param>
    /// <param name="expectedVersion">The version that the game knows; null means whatever is stored.</param>
    /// <param name="cancellation">Ends the call; the edits may have been made all the same.</param>
    /// <exception cref="VersionConflictException">Something newer is stored; nothing was changed.</exception>
    /// <exception cref="EditFailedException">One of the edits failed; nothing was changed.</exception>
    public async Task<EditResult> EditAsync(
        IEnumerable<MemoryEdit> edits, int? expectedVersion = null, CancellationToken cancellation = default)
    {
        var request = new EditDocumentRequest
        {
            Actor = actor,
            Edits = { edits.Select(edit => edit.Wire) },
            IdempotencyKey = Guid.NewGuid().ToString("N"),
        };
        if (expectedVersion is { } version)
        {
            request.ExpectedVersion = version;
        }

        var answer = await calls.Memory.EditDocumentAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return new EditResult(answer.Version, answer.Changed);
    }

    /// <summary>Lists the versions that are kept, oldest first.</summary>
    public async Task<IReadOnlyList<MemoryVersion>> VersionsAsync(CancellationToken cancellation = default)
    {
        var versions = new List<MemoryVersion>();
        var request = new ListDocumentVersionsRequest { Actor = actor };
        do
        {
            var page = await calls.Memory.ListDocumentVersionsAsync(request, cancellationToken: cancellation)
                .ConfigureAwait(false);
            versions.AddRange(page.Versions.Select(one => new MemoryVersion(one.Version, one.Action.ToString(), one.Length)));
            request = new ListDocumentVersionsRequest { Actor = actor, PageToken = page.NextPageToken };
        }
        while (request.PageToken.Length > 0);
        return versions;
    }

    /// <summary>Makes an older version the current one, as a new version.</summary>
    public async Task<EditResult> RevertAsync(int version, CancellationToken cancellation = default)
    {
        var request = new RevertDocumentRequest { Actor = actor, Version = version };
        var answer = await calls.Memory.RevertDocumentAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return new EditResult(answer.Version, answer.Changed);
    }

    /// <summary>Deletes the text with all its versions, for good.</summary>
    /// <returns>Whether there was something to delete.</returns>
    public async Task<bool> ResetAsync(CancellationToken cancellation = default)
    {
        var request = new ResetDocumentRequest { Actor = actor };
        var answer = await calls.Memory.ResetDocumentAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return answer.Existed;
    }
}
