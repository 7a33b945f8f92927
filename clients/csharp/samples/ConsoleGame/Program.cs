// A game in a terminal: Mira remembers, answers, opens a gate, and forgets again when the player loads an older save.
//
//     dotnet run [data folder]
using Lorekeeper;
using Lorekeeper.V1;

var dataFolder = args.Length > 0 ? args[0] : Directory.CreateTempSubdirectory("lorekeeper-").FullName;
await using var lore = await LorekeeperClient.StartAsync(dataFolder);
Console.WriteLine($"The daemon runs as process {lore.Sidecar!.Handshake.ProcessId} on {dataFolder}.");

var save = lore.Save("slot-1");
var mira = save.Npc("mira", role: "Merchant");

// What she knows is one text, which the game and a model may edit.
await mira.Memory.AppendAsync("The player spared the wolf.");
Console.WriteLine($"Mira knows: {(await mira.Memory.ReadAsync()).Text}");

// What happened are records at a time of the game; nothing that happens later is found.
await mira.Records.AddAsync(new Remembrance("The player spared the wolf at the old orchard.", 4_200));
foreach (var found in (await mira.Records.SearchAsync("wolf", now: 5_000)).Found)
{
    Console.WriteLine($"Mira recalls: {found.Text}");
}

// Without a language model she says lines that the game wrote.
await lore.PutRoleAsync(new Role
{
    RoleId = "Merchant",
    BackendId = "offline",
    OfflineLines = { "The wolf you spared came back last night.", "Mind the step." },
});
Console.Write("Mira says: ");
await foreach (var part in mira.SayAsync("Do you remember the wolf?"))
{
    Console.Write(part);
}

Console.WriteLine();

// A conversation in which a model may call what the game can do.
var openGate = NpcTool.Create(
    "open_gate",
    "Opens a gate of the town.",
    ToolParameter.Choice("gate", "Which gate.", ["north", "south"]),
    gate => Task.FromResult($"The {gate} gate is open.")).Mutating();
await using (var talk = await mira.OpenConversationAsync([openGate]))
{
    Console.Write("Mira says: ");
    await foreach (var part in talk.SayAsync("Please open the gate."))
    {
        Console.Write(part);
    }

    Console.WriteLine();
}

// Memory follows the player's save.
var checkpoint = await save.CheckpointAsync("before the gate", 5_000);
await mira.Memory.AppendAsync("The player stole a lamp.");
await save.RestoreAsync(checkpoint.Id);
Console.WriteLine($"After loading, Mira knows: {(await mira.Memory.ReadAsync()).Text}");
