using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Threading.Tasks;

namespace Lorekeeper.Tests;

/// <summary>A language-model server on this machine: real HTTP, the chat-completions wire, answers that the test wrote.</summary>
internal sealed class FakeModel : IDisposable
{
    private readonly HttpListener listener = new();
    private readonly Queue<IEnumerable<string>> answers;

    internal FakeModel(params IEnumerable<string>[] answers)
    {
        this.answers = new Queue<IEnumerable<string>>(answers);
        Address = $"http://127.0.0.1:{FreePort()}/v1";
        listener.Prefixes.Add(Address + "/");
        listener.Start();
        _ = ServeAsync();
    }

    internal string Address { get; }

    /// <summary>The bodies of the turns that were asked for.</summary>
    internal ConcurrentQueue<string> Requests { get; } = new();

    internal static IEnumerable<string> Say(params string[] tokens) =>
        tokens.Select(Token).Append(Finish("stop"));

    internal static IEnumerable<string> SayForever(string token) => Enumerable.Repeat(Token(token), int.MaxValue);

    internal static IEnumerable<string> Call(string tool, string argumentsJson)
    {
        var call = new Dictionary<string, object?>
        {
            ["index"] = 0,
            ["id"] = "call-1",
            ["type"] = "function",
            ["function"] = new Dictionary<string, object?> { ["name"] = tool, ["arguments"] = argumentsJson },
        };
        return [Delta(new Dictionary<string, object?> { ["tool_calls"] = new[] { call } }, null), Finish("tool_calls")];
    }

    public void Dispose() => listener.Close();

    private static string Token(string text) => Delta(new Dictionary<string, object?> { ["content"] = text }, null);

    private static string Finish(string reason) => Delta([], reason);

    private static string Delta(Dictionary<string, object?> delta, string? finish)
    {
        var choice = new Dictionary<string, object?> { ["index"] = 0, ["delta"] = delta, ["finish_reason"] = finish };
        var chunk = new Dictionary<string, object?>
        {
            ["id"] = "1",
            ["object"] = "chat.completion.chunk",
            ["model"] = "fake",
            ["choices"] = new[] { choice },
        };
        return "data: " + JsonWriter.Write(chunk) + "\n\n";
    }

    private static int FreePort()
    {
        using var probe = new TcpListener(IPAddress.Loopback, 0);
        probe.Start();
        return ((IPEndPoint)probe.LocalEndpoint).Port;
    }

    private async Task ServeAsync()
    {
        try
        {
            while (true)
            {
                var context = await listener.GetContextAsync();
                _ = AnswerAsync(context);
            }
        }
        catch (Exception error) when (error is HttpListenerException or ObjectDisposedException)
        {
            // The test has ended.
        }
    }

    private async Task AnswerAsync(HttpListenerContext context)
    {
        using var response = context.Response;
        if (context.Request.HttpMethod != "POST")
        {
            response.StatusCode = 404;
            return;
        }

        using var body = new StreamReader(context.Request.InputStream, Encoding.UTF8);
        Requests.Enqueue(await body.ReadToEndAsync());
        response.ContentType = "text/event-stream";
        response.SendChunked = true;
        try
        {
            foreach (var piece in answers.Dequeue().Append("data: [DONE]\n\n"))
            {
                await response.OutputStream.WriteAsync(Encoding.UTF8.GetBytes(piece));
                await response.OutputStream.FlushAsync();
            }
        }
        catch (Exception error) when (error is HttpListenerException or IOException or ObjectDisposedException)
        {
            // The daemon closed the connection: the turn was cancelled.
        }
    }
}
