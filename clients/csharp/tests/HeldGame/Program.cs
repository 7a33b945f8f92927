using System;
using System.Threading;
using System.Threading.Tasks;
using Lorekeeper;

// Starts a daemon, tells its process id, and then either plays on until it is killed or ends without disposing anything.
var options = new SidecarOptions(args[1]) { Command = args[2..] };
var client = await LorekeeperClient.StartAsync(options);
Console.WriteLine(client.Sidecar!.Handshake.ProcessId);
if (args[0] == "hold")
{
    await Task.Delay(Timeout.Infinite);
}
