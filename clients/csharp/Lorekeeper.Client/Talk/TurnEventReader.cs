using System;
using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Lorekeeper.V1;

namespace Lorekeeper;

/// <summary>
/// Reads the answers of turns. The text of a plain token comes out as a <see cref="string"/>, everything else as a
/// <see cref="TurnEvent"/>: a token costs its string and no message around it.
/// </summary>
internal static class TurnEventReader
{
    // Field numbers of chat.proto; a test compares them with the generated descriptors.
    internal const int EventField = SendResponse.EventFieldNumber;
    internal const int TextField = TurnEvent.TextFieldNumber;
    internal const int DeltaField = TextDelta.TextFieldNumber;

    private const int LengthDelimited = 2;

    internal static readonly Marshaller<object> OfSend = Marshallers.Create<object>(
        (_, _) => throw new NotSupportedException(), context => Read(context, SendResponse.Parser, answer => answer.Event));

    internal static readonly Marshaller<object> OfConverse = Marshallers.Create<object>(
        (_, _) => throw new NotSupportedException(), context => Read(context, ConverseResponse.Parser, answer => answer.Event));

    /// <summary>
    /// The text, where the message is an event that is nothing but a piece of text within the running message.
    /// </summary>
    internal static string? TextOf(ReadOnlySpan<byte> message) =>
        TryFind(message, EventField, out var happened)
        && TryFind(happened, TextField, out var delta)
        && TryFind(delta, DeltaField, out var text)
        && IsAll(delta, text)
            ? Encoding.UTF8.GetString(text)
            : null;

    private static object Read<T>(DeserializationContext context, MessageParser<T> parser, Func<T, TurnEvent> select)
        where T : IMessage<T>
    {
        var payload = context.PayloadAsReadOnlySequence();
        if (payload.IsSingleSegment && TextOf(payload.First.Span) is { } text)
        {
            return text;
        }

        return select(parser.ParseFrom(payload)) ?? new TurnEvent();
    }

    // A delta with another field beside its text, such as starts_message, is left to the generated parser.
    private static bool IsAll(ReadOnlySpan<byte> delta, ReadOnlySpan<byte> text)
    {
        var rest = delta;
        _ = ReadNumber(ref rest);
        _ = ReadNumber(ref rest);
        return rest.Length == text.Length;
    }

    private static bool TryFind(ReadOnlySpan<byte> message, int wanted, out ReadOnlySpan<byte> content)
    {
        content = default;
        while (message.Length > 0)
        {
            var tag = ReadNumber(ref message);
            if ((tag & 7) != LengthDelimited)
            {
                if ((tag & 7) != 0)
                {
                    return false;
                }

                _ = ReadNumber(ref message);
                continue;
            }

            var length = ReadNumber(ref message);
            if (length > (ulong)message.Length)
            {
                return false;
            }

            content = message[..(int)length];
            if ((int)(tag >> 3) == wanted)
            {
                return true;
            }

            message = message[(int)length..];
        }

        return false;
    }

    private static ulong ReadNumber(ref ReadOnlySpan<byte> message)
    {
        ulong number = 0;
        for (var shift = 0; shift < 64 && message.Length > 0; shift += 7)
        {
            var next = message[0];
            message = message[1..];
            number |= (ulong)(next & 0x7f) << shift;
            if (next < 0x80)
            {
                break;
            }
        }

        return number;
    }
}
