using System.Linq;
using System.Threading.Tasks;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests.Contract;

public static class SystemRows
{
    public static async Task GetInfo(Scene scene) =>
        Assert.NotEmpty((await scene.Calls.System.GetInfoAsync(new GetInfoRequest())).Capabilities);

    public static async Task GetStats(Scene scene)
    {
        await scene.Mira.Memory.ReadAsync();
        var methods = (await scene.Calls.System.GetStatsAsync(new GetStatsRequest())).Methods;
        Assert.Contains("/lorekeeper.v1.MemoryService/GetDocument", methods.Select(method => method.Method));
    }

    public static async Task WatchDiagnostics(Scene scene)
    {
        using var watch = scene.Calls.System.WatchDiagnostics(new WatchDiagnosticsRequest { AfterSequence = 0 });
        Assert.True(await watch.ResponseStream.MoveNext(default));
        Assert.Equal("daemon_started", watch.ResponseStream.Current.Diagnostic.Code);
    }

    public static async Task Shutdown(Scene scene)
    {
        await using var client = await LorekeeperClient.StartAsync(Places.Options());
        var daemon = client.Sidecar!.Handshake.ProcessId;
        Assert.NotEqual(daemon, (await scene.Client.GetInfoAsync()).Pid);
        Assert.False((await client.Calls.System.ShutdownAsync(new ShutdownRequest { Reason = "a row" })).AlreadyStopping);
        await Eventually.True(() => Eventually.IsGone(daemon), System.TimeSpan.FromSeconds(30), "The end of the daemon");
    }
}
