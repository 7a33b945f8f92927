using System.Linq;
using System.Threading.Tasks;
using Grpc.Core;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests.Contract;

/// <summary>Rows that hold with a model and without one; none of them changes which one is loaded.</summary>
public static class EmbeddingRows
{
    private const string Unknown = "a model that nobody has";

    public static async Task Embed(Scene scene)
    {
        var request = new EmbedRequest { Kind = EmbedKind.Query, Texts = { "cat" }, Model = Unknown };
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(
            () => scene.Calls.Embedding.EmbedAsync(request).ResponseAsync);
        Assert.Equal(StatusCode.FailedPrecondition, error.Code);
    }

    public static async Task ListModels(Scene scene)
    {
        var models = (await scene.Calls.Embedding.ListModelsAsync(new ListModelsRequest())).Models;
        Assert.Equal(models.Count, models.Select(model => model.Name).Distinct().Count());
        Assert.DoesNotContain(models, model => model.State == ModelState.Unspecified);
    }

    public static async Task LoadModel(Scene scene)
    {
        using var call = scene.Calls.Embedding.LoadModel(new LoadModelRequest { Name = Unknown });
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => Scene.AllAsync(call.ResponseStream));
        Assert.Equal(StatusCode.NotFound, error.Code);
    }

    public static async Task UnloadModel(Scene scene)
    {
        var answer = await scene.Calls.Embedding.UnloadModelAsync(new UnloadModelRequest { Name = Unknown });
        Assert.False(answer.Unloaded);
    }

    public static async Task GetEmbeddingStats(Scene scene)
    {
        var stats = await scene.Calls.Embedding.GetEmbeddingStatsAsync(new GetEmbeddingStatsRequest());
        Assert.True(stats.QueueCapacity > 0);
    }
}
