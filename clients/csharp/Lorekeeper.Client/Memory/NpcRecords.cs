using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// Single memories of an NPC at moments of the game. They are never changed, only replaced or forgotten.
/// </summary>
public sealed class NpcRecords
{
    private readonly Calls calls;
    private readonly Actor actor;

    internal NpcRecords(Calls calls, Actor actor)
    {
        this.calls = calls;
        this.actor = actor;
    }

    /// <summary>Remembers something.</summary>
    /// <returns>The id of the record.</returns>
    public async Task<string> AddAsync(Remembrance memory, CancellationToken cancellation = default) =>
        (await AddAsync([memory], cancellation).ConfigureAwait(false))[0];

    /// <summary>Remembers several things, all or none.</summary>
    /// <remarks>
    /// What else became of them, such as how many records a retention dropped for them and where one has more text than
    /// can be found by words, is in the answer of <see cref="Lorekeeper.Calls.Memory"/>.AddRecordsAsync.
    /// </remarks>
    /// <returns>Their ids, in order.</returns>
    public async Task<IReadOnlyList<string>> AddAsync(
        IEnumerable<Remembrance> memories, CancellationToken cancellation = default)
    {
        var request = new AddRecordsRequest { Actor = actor, Records = { memories.Select(one => one.ToRecord()) } };
        var answer = await calls.Memory.AddRecordsAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return answer.Records.Select(record => record.RecordId).ToList();
    }

    /// <summary>
    /// Finds what the NPC would recall: nothing that happens after now, nothing that it may not know.
    /// </summary>
    /// <param name="text">What to look for; empty means everything, by importance.</param>
    /// <param name="now">Now, in game time.</param>
    /// <param name="limit">How many at most, 0 to 512.</param>
    /// <param name="configure">Sets what else the contract has for a search; null means nothing.</param>
    /// <param name="cancellation">Ends the call.</param>
    public async Task<SearchResult> SearchAsync(
        string text,
        GameTime now,
        int limit = 10,
        Action<SearchRequest>? configure = null,
        CancellationToken cancellation = default)
    {
        var filter = new RecordFilter { AtOrBefore = now.ToMoment() };
        var request = new SearchRequest { Actor = actor, Text = text, Filter = filter, Limit = limit };
        configure?.Invoke(request);
        var answer = await calls.Search.SearchAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return new SearchResult(answer.Hits.Select(Recollection.From).ToList(), answer.DegradedReason);
    }

    /// <summary>Forgets records for good. Ids that do not exist are passed over.</summary>
    /// <returns>How many were forgotten.</returns>
    public async Task<long> ForgetAsync(IEnumerable<string> ids, CancellationToken cancellation = default)
    {
        var request = new ForgetRecordsRequest { Actor = actor, RecordIds = { ids } };
        var answer = await calls.Memory.ForgetRecordsAsync(request, cancellationToken: cancellation).ConfigureAwait(false);
        return answer.Forgotten;
    }
}
