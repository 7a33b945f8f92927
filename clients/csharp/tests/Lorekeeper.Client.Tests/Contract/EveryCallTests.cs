using System;
using System.Linq;
using System.Reflection;
using System.Threading.Tasks;
using Google.Protobuf.Reflection;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests.Contract;

/// <summary>One row of the acceptance cases for each call of the contract, played through the generated clients.</summary>
public sealed class EveryCallTests(DaemonFixture daemon)
{
    private static readonly (ServiceDescriptor Service, Type Rows)[] Services =
    [
        (MemoryService.Descriptor, typeof(MemoryRows)),
        (ChatService.Descriptor, typeof(ChatRows)),
        (CompactionService.Descriptor, typeof(CompactionRows)),
        (EmbeddingService.Descriptor, typeof(EmbeddingRows)),
        (SearchService.Descriptor, typeof(SearchRows)),
        (SaveService.Descriptor, typeof(SaveRows)),
        (SystemService.Descriptor, typeof(SystemRows)),
    ];

    public static TheoryData<string, string> Calls { get; } =
        new(Services.SelectMany(one => one.Service.Methods.Select(method => (one.Service.Name, method.Name))));

    [Theory]
    [MemberData(nameof(Calls))]
    public async Task A_call_answers_as_its_row_says(string service, string call)
    {
        var rows = Services.Single(one => one.Service.Name == service).Rows;
        var row = rows.GetMethod(call, BindingFlags.Static | BindingFlags.Public);
        Assert.True(row is not null, $"{rows.Name} has no row for {call}");
        await (Task)row.Invoke(null, [new Scene(daemon.Client)])!;
    }
}
