using Grpc.Core;
using Grpc.Core.Interceptors;

namespace Lorekeeper;

/// <summary>
/// The whole contract as generated clients, for whatever the rest of this library has no word for. They carry token,
/// deadline, key and repetition like everything else, and throw <see cref="LorekeeperCallException"/>; use their
/// asynchronous methods.
/// </summary>
public sealed class Calls
{
    internal Calls(Connection connection, ClientOptions options)
    {
        var invoker = connection.Intercept(new CallPolicy(connection, options));
        Memory = new V1.MemoryService.MemoryServiceClient(invoker);
        Search = new V1.SearchService.SearchServiceClient(invoker);
        Chat = new V1.ChatService.ChatServiceClient(invoker);
        Compaction = new V1.CompactionService.CompactionServiceClient(invoker);
        Embedding = new V1.EmbeddingService.EmbeddingServiceClient(invoker);
        Saves = new V1.SaveService.SaveServiceClient(invoker);
        System = new V1.SystemService.SystemServiceClient(invoker);
        Turns = connection;
    }

    /// <summary>Documents, tools of a model, records, groups, retention.</summary>
    public V1.MemoryService.MemoryServiceClient Memory { get; }

    /// <summary>Finding records.</summary>
    public V1.SearchService.SearchServiceClient Search { get; }

    /// <summary>History, roles, prompts, turns, backends.</summary>
    public V1.ChatService.ChatServiceClient Chat { get; }

    /// <summary>The rolling summary and token counts.</summary>
    public V1.CompactionService.CompactionServiceClient Compaction { get; }

    /// <summary>Embedding models and vectors.</summary>
    public V1.EmbeddingService.EmbeddingServiceClient Embedding { get; }

    /// <summary>Checkpoint, restore, fork, export, import, erase.</summary>
    public V1.SaveService.SaveServiceClient Saves { get; }

    /// <summary>The daemon itself.</summary>
    public V1.SystemService.SystemServiceClient System { get; }

    /// <summary>The bare connection, for turns: their reader makes nothing for a token but its text.</summary>
    internal CallInvoker Turns { get; }
}
