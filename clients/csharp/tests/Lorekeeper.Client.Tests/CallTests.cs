using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Grpc.Core;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests;

public sealed class CallTests(DaemonFixture daemon)
{
    [Fact]
    public async Task A_call_with_a_wrong_token_is_refused_with_a_reason()
    {
        var wrong = daemon.Client.Sidecar!.Handshake with { Token = "wrong" };
        await using var client = LorekeeperClient.Connect(wrong);
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => client.GetInfoAsync());
        Assert.Equal((StatusCode.Unauthenticated, "TOKEN_INVALID"), (error.Code, error.Reason));
    }

    [Fact]
    public async Task A_call_past_its_deadline_says_so()
    {
        await using var client = LorekeeperClient.Connect(
            daemon.Client.Sidecar!.Handshake, new ClientOptions { Deadline = TimeSpan.Zero });
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => client.GetInfoAsync());
        Assert.Equal(StatusCode.DeadlineExceeded, error.Code);
        Assert.Contains("deadline", error.Message);
    }

    [Fact]
    public async Task A_call_may_be_without_a_deadline()
    {
        await using var client = LorekeeperClient.Connect(
            daemon.Client.Sidecar!.Handshake, new ClientOptions { Deadline = Timeout.InfiniteTimeSpan });
        Assert.NotEmpty((await client.GetInfoAsync()).Version);
    }

    [Fact]
    public async Task A_message_that_is_too_large_says_what_to_do()
    {
        await using var client = LorekeeperClient.Connect(
            daemon.Client.Sidecar!.Handshake, new ClientOptions { MaxAnswerBytes = 10 });
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => client.GetInfoAsync());
        Assert.Contains("ClientOptions.MaxAnswerBytes", error.Message);
    }

    [Fact]
    public async Task A_stream_whose_client_is_disposed_ends_with_a_reason()
    {
        var client = LorekeeperClient.Connect(daemon.Client.Sidecar!.Handshake);
        using var watch = client.Calls.System.WatchDiagnostics(new WatchDiagnosticsRequest());
        var next = watch.ResponseStream.MoveNext(CancellationToken.None);
        await client.DisposeAsync();
        var error = await Assert.ThrowsAnyAsync<LorekeeperCallException>(() => next);
        Assert.Contains("the client was disposed", error.Message);
    }

    [Fact]
    public async Task A_cancelled_call_is_cancelled_as_a_task_is()
    {
        using var cancelled = new CancellationTokenSource();
        cancelled.Cancel();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => daemon.NewSave().Npc("mira").Memory.ReadAsync(cancellation: cancelled.Token));
    }

    [Fact]
    public async Task A_stream_that_is_cancelled_ends_and_the_daemon_goes_on()
    {
        using var cancelled = new CancellationTokenSource();
        using var watch = daemon.Client.Calls.System.WatchDiagnostics(
            new WatchDiagnosticsRequest(), cancellationToken: cancelled.Token);
        var next = watch.ResponseStream.MoveNext(cancelled.Token);
        cancelled.Cancel();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => next);
        Assert.NotEmpty((await daemon.Client.GetInfoAsync()).Version);
    }

    [Fact]
    public async Task The_daemon_tells_its_contract_and_figures()
    {
        var info = await daemon.Client.GetInfoAsync();
        var figures = await daemon.Client.Calls.System.GetStatsAsync(new GetStatsRequest());
        Assert.True(info.Persistent);
        Assert.Contains(figures.Methods, method => method.Method == "/lorekeeper.v1.SystemService/GetInfo");
    }

    [Fact]
    public async Task A_request_that_is_sent_twice_by_the_game_is_two_requests()
    {
        var mira = daemon.NewSave().Npc("mira");
        var request = new ResetDocumentRequest { Actor = mira.Actor };
        await mira.Memory.WriteAsync("one");
        Assert.True((await daemon.Client.Calls.Memory.ResetDocumentAsync(request)).Existed);
        Assert.False((await daemon.Client.Calls.Memory.ResetDocumentAsync(request)).Existed);
        Assert.Equal("", request.IdempotencyKey);
    }

    [Fact]
    public async Task A_key_of_the_games_own_makes_a_repeat_return_the_first_answer()
    {
        var mira = daemon.NewSave().Npc("mira");
        var request = new ResetDocumentRequest { Actor = mira.Actor, IdempotencyKey = "scene-7" };
        await mira.Memory.WriteAsync("one");
        Assert.True((await daemon.Client.Calls.Memory.ResetDocumentAsync(request)).Existed);
        Assert.True((await daemon.Client.Calls.Memory.ResetDocumentAsync(request)).Existed);
    }

    [Fact]
    public void Every_request_of_the_contract_with_a_key_is_given_one()
    {
        var withKey = Messages().Where(message => message.FindFieldByName("idempotency_key") is not null);
        Assert.All(withKey, message => Assert.True(
            typeof(IKeyedRequest).IsAssignableFrom(message.ClrType), message.Name + " is missing in KeyedRequests.cs"));
    }

    [Theory]
    [InlineData("/lorekeeper.v1.ChatService", "PutRole", false)]
    [InlineData("/lorekeeper.v1.MemoryService", "GetDocument", true)]
    [InlineData("/lorekeeper.v1.SearchService", "Search", true)]
    [InlineData("/lorekeeper.v1.SystemService", "Shutdown", false)]
    public void Only_reads_are_repeated_without_a_key(string service, string name, bool safe)
    {
        var method = new Method<GetInfoRequest, GetInfoResponse>(
            MethodType.Unary, service, name, Marshaller<GetInfoRequest>(), Marshaller<GetInfoResponse>());
        Assert.Equal(safe, RetryRules.IsSafe(method, new GetInfoRequest()));
    }

    [Fact]
    public void A_change_is_repeated_only_with_a_key()
    {
        var method = new Method<EditDocumentRequest, EditDocumentResponse>(
            MethodType.Unary, "s", "EditDocument", Marshaller<EditDocumentRequest>(), Marshaller<EditDocumentResponse>());
        Assert.False(RetryRules.IsSafe(method, new EditDocumentRequest()));
        Assert.True(RetryRules.IsSafe(method, new EditDocumentRequest { IdempotencyKey = "k" }));
    }

    [Fact]
    public void A_wait_grows_to_two_seconds_unless_the_daemon_names_one()
    {
        var failure = new CallFailure(StatusCode.Unavailable, "");
        var waits = Enumerable.Range(1, 7).Select(attempt => RetryRules.Wait(attempt, failure).TotalMilliseconds);
        Assert.Equal([100, 200, 400, 800, 1_600, 2_000, 2_000], waits);
        Assert.Equal(7, RetryRules.Wait(1, failure with { RetryAfter = TimeSpan.FromMilliseconds(7) }).TotalMilliseconds);
    }

    [Fact]
    public void A_call_on_a_single_threaded_context_ends_while_its_thread_waits()
    {
        using var thread = new SingleThread();
        var text = thread.Run(() =>
        {
            var memory = daemon.NewSave().Npc("mira").Memory;
            memory.WriteAsync("one").GetAwaiter().GetResult();
            return memory.ReadAsync().GetAwaiter().GetResult().Text;
        });
        Assert.Equal("one", text);
    }

    [Fact]
    public void A_client_starts_and_ends_on_a_single_threaded_context_that_waits()
    {
        using var thread = new SingleThread();
        var version = thread.Run(() =>
        {
            using var client = LorekeeperClient.StartAsync(Places.Options()).GetAwaiter().GetResult();
            return client.GetInfoAsync().GetAwaiter().GetResult().Version;
        });
        Assert.NotEmpty(version);
    }

    private static IEnumerable<MessageDescriptor> Messages() =>
        new[] { MemoryReflection.Descriptor, ChatReflection.Descriptor, SaveReflection.Descriptor, CompactionReflection.Descriptor }
            .SelectMany(file => file.MessageTypes);

    private static Marshaller<T> Marshaller<T>()
        where T : IMessage<T>, new() =>
        Marshallers.Create(message => message.ToByteArray(), new MessageParser<T>(() => new T()).ParseFrom);
}
