using System;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper;
using Lorekeeper.V1;

// Starts a daemon, tells its process id, and then plays on until it is killed, with or without a call that runs, or ends
// without disposing anything.
var options = new SidecarOptions(args[1]) { Command = args[2..] };
var client = await LorekeeperClient.StartAsync(options);
if (args[0] == "watch")
{
    var watch = client.Calls.System.WatchDiagnostics(new WatchDiagnosticsRequest { AfterSequence = 0 });
    await watch.ResponseStream.MoveNext(default);
}

Console.WriteLine(client.Sidecar!.Handshake.ProcessId);
if (args[0] != "leave")
{
    await Task.Delay(Timeout.Infinite);
}
