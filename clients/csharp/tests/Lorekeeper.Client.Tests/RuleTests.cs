using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Google.Protobuf;
using Lorekeeper.V1;
using Xunit;

namespace Lorekeeper.Tests;

public sealed class RuleTests
{
    [Fact]
    public void Json_is_read_as_it_was_written()
    {
        var value = new Dictionary<string, object?>
        {
            ["text"] = "Željko \"🎮\" \\ \n \u0001",
            ["list"] = new List<object?> { 1.5, -2.0, true, false, null, "", new Dictionary<string, object?>() },
        };
        Assert.Equivalent(value, JsonReader.Read(JsonWriter.Write(value)), strict: true);
    }

    [Fact]
    public void Json_escapes_are_read() =>
        Assert.Equal("a\"\\/\b\f\n\r\tж🎮", JsonReader.Read(""" "a\"\\\/\b\f\n\r\t\u0436\ud83c\udfae" """));

    [Theory]
    [InlineData("")]
    [InlineData("{")]
    [InlineData("[1,]")]
    [InlineData("[1 2]")]
    [InlineData("{\"a\" 1}")]
    [InlineData("\"open")]
    [InlineData("\"\\u12g4\"")]
    [InlineData("\"\\x\"")]
    [InlineData("tru")]
    [InlineData("1 2")]
    [InlineData("nope")]
    public void What_is_no_json_is_a_format_error(string text) =>
        Assert.Throws<FormatException>(() => JsonReader.Read(text));

    [Fact]
    public void Json_that_is_nested_without_end_is_refused() =>
        Assert.Throws<FormatException>(() => JsonReader.Read(new string('[', 100_000)));

    [Fact]
    public void Parameters_become_a_schema_and_arguments_become_values()
    {
        var tool = NpcTool.Create(
            "give",
            "Gives something.",
            ToolParameter.Choice("what", "What.", ["bread", "lamp"]),
            ToolParameter.Whole("count", "How many.", required: false),
            (what, count) => Task.FromResult($"{count} {what}"));
        Assert.Equal(
            """{"type":"object","properties":{"what":{"type":"string","description":"What.","enum":["bread","lamp"]},"count":{"type":"integer","description":"How many."}},"required":["what"]}""",
            tool.ParametersJson);
    }

    [Fact]
    public async Task A_tool_is_called_with_its_typed_arguments()
    {
        var tool = NpcTool.Create(
            "turn",
            "Turns.",
            ToolParameter.Text("what", "What."),
            ToolParameter.Number("angle", "How far."),
            ToolParameter.Flag("slowly", "Slowly."),
            (what, angle, slowly) => Task.FromResult(FormattableString.Invariant($"{what} {angle} {slowly}")));
        Assert.Equal("wheel 1.5 True", await tool.RunAsync("""{"what":"wheel","angle":1.5,"slowly":true}"""));
        Assert.Equal(" 0 False", await tool.RunAsync(""));
    }

    [Fact]
    public async Task A_tool_that_answers_nothing_has_failed()
    {
        var silent = NpcTool.Create("wait", "Waits.", () => Task.FromResult<string>(null!));
        await Assert.ThrowsAsync<InvalidOperationException>(() => silent.RunAsync("{}"));
    }

    [Fact]
    public void A_tool_may_take_as_long_as_it_likes()
    {
        var tool = NpcTool.Create("wait", "Waits.", () => Task.FromResult("done"));
        Assert.Equal(0, tool.WithTimeout(Timeout.InfiniteTimeSpan).Declaration.TimeoutMs);
    }

    [Fact]
    public void A_tool_that_is_made_mutating_leaves_the_first_as_it_was()
    {
        var tool = NpcTool.Create("wait", "Waits.", () => Task.FromResult("done"));
        var mutating = tool.Mutating().WithTimeout(TimeSpan.FromSeconds(2));
        Assert.Equal((true, 2_000), (mutating.Declaration.Mutating, mutating.Declaration.TimeoutMs));
        Assert.False(tool.Declaration.Mutating);
    }

    [Fact]
    public void A_plain_token_is_read_without_a_message_around_it()
    {
        var answer = Answer(new TextDelta { Text = "The wölf 🐺" });
        Assert.Equal("The wölf 🐺", TurnEventReader.TextOf(answer.ToByteArray()));
    }

    [Fact]
    public void What_is_more_than_a_plain_token_is_left_to_the_generated_parser()
    {
        Assert.Null(TurnEventReader.TextOf(Answer(new TextDelta { Text = "New", StartsMessage = true }).ToByteArray()));
        var started = new SendResponse { Event = new TurnEvent { Started = new TurnStarted { Model = "text" } } };
        Assert.Null(TurnEventReader.TextOf(started.ToByteArray()));
    }

    [Fact]
    public void Bytes_that_are_no_answer_never_throw()
    {
        var random = new Random(7);
        var whole = Answer(new TextDelta { Text = "The wolf" }).ToByteArray();
        for (var round = 0; round < 10_000; round++)
        {
            var bytes = whole[..random.Next(whole.Length)].Concat(new byte[] { (byte)random.Next(256) }).ToArray();
            bytes[random.Next(bytes.Length)] = (byte)random.Next(256);
            _ = TurnEventReader.TextOf(bytes);
        }
    }

    [Fact]
    public void A_token_costs_its_string_and_nothing_else()
    {
        var bytes = Answer(new TextDelta { Text = "wolf" }).ToByteArray();
        _ = TurnEventReader.TextOf(bytes);
        var before = GC.GetAllocatedBytesForCurrentThread();
        var text = TurnEventReader.TextOf(bytes);
        var part = ReplyPart.From(text!);
        var allocated = GC.GetAllocatedBytesForCurrentThread() - before;
        before = GC.GetAllocatedBytesForCurrentThread();
        var plain = Encoding.UTF8.GetString("wolf"u8);
        Assert.Equal(GC.GetAllocatedBytesForCurrentThread() - before, allocated);
        Assert.Equal(plain, part.Text);
    }

    [Fact]
    public void A_handshake_line_is_read()
    {
        var line = """{"lorekeeper":1,"address":"127.0.0.1:43211","token":"t","pid":4242,"version":"0.1.0","data_dir":"/a","reused":true}""";
        Assert.Equal(new Handshake("127.0.0.1:43211", "t", 4242, "0.1.0", "/a", true), Handshake.Parse(line));
    }

    [Theory]
    [InlineData("hello")]
    [InlineData("{}")]
    [InlineData("""{"address":1}""")]
    public void Another_line_is_no_handshake(string line) =>
        Assert.Throws<FormatException>(() => Handshake.Parse(line));

    [Fact]
    public void A_command_on_one_line_is_a_program_or_a_program_with_arguments()
    {
        var program = Path.Combine(Places.NewDataFolder(), "my daemon");
        File.WriteAllText(program, "");
        Assert.Equal([program], SidecarOptions.ParseCommand($" {program} "));
        Assert.Equal(["python3", "-m", "sidecar"], SidecarOptions.ParseCommand("python3 -m  sidecar"));
        Assert.Empty(SidecarOptions.ParseCommand(" "));
    }

    [Fact]
    public void One_restart_is_allowed_and_another_after_a_long_run()
    {
        var budget = new RestartBudget(TimeSpan.FromMinutes(1));
        var start = new DateTime(2026, 1, 1);
        Assert.True(budget.TryTake(start));
        Assert.False(budget.TryTake(start.AddSeconds(59)));
        Assert.True(budget.TryTake(start.AddSeconds(60)));
    }

    [Theory]
    [InlineData("plain", "plain")]
    [InlineData("two words", "\"two words\"")]
    [InlineData("", "\"\"")]
    [InlineData("C:\\folder\\", "C:\\folder\\")]
    [InlineData("C:\\my folder\\", "\"C:\\my folder\\\\\"")]
    [InlineData("say \"hi\"", "\"say \\\"hi\\\"\"")]
    [InlineData("a\\\"b", "\"a\\\\\\\"b\"")]
    public void An_argument_is_quoted_as_windows_splits_it(string argument, string quoted) =>
        Assert.Equal(quoted, WindowsCommandLine.Join([argument]));

    private static SendResponse Answer(TextDelta delta) => new()
    {
        Save = new SaveState { Revision = 7, Epoch = 1 },
        Event = new TurnEvent { Sequence = 300, TurnId = "turn", InputId = "line", Text = delta },
    };
}
