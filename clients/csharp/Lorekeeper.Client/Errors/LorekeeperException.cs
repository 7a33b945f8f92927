using System;
using System.Collections.Generic;
using Grpc.Core;

namespace Lorekeeper;

/// <summary>
/// The base of everything that the client throws besides <see cref="OperationCanceledException"/> and argument errors.
/// </summary>
/// <remarks>
/// <code>
/// LorekeeperException
/// ├─ SidecarStartException          the daemon's program could not be found or started
/// └─ LorekeeperCallException        a call failed; Reason and Code say why
///    ├─ DaemonUnavailableException   the daemon ended or does not answer
///    ├─ NotServedException           this daemon does not answer the call yet
///    ├─ VersionConflictException     something newer is stored: read again, repeat
///    ├─ EditFailedException          an edit of a memory document failed; has the nearest lines
///    └─ TurnFailedException          a turn with a language model failed
/// </code>
/// </remarks>
public abstract class LorekeeperException : Exception
{
    private protected LorekeeperException(string message, Exception? cause)
        : base(message, cause)
    {
    }
}

/// <summary>A call failed. The message says what happened and what to do; it never holds memory text.</summary>
public class LorekeeperCallException : LorekeeperException
{
    internal LorekeeperCallException(CallFailure failure)
        : base(failure.Message, failure.Cause) => Failure = failure;

    /// <summary>The reason from the closed list of docs/errors.md, such as "VERSION_MISMATCH"; empty when the daemon gave none.</summary>
    public string Reason => Failure.Reason;

    /// <summary>The standard status code.</summary>
    public StatusCode Code => Failure.Code;

    /// <summary>What a program needs to react: the limit and its value, the current version, the file.</summary>
    public IReadOnlyDictionary<string, string> Details => Failure.Details;

    /// <summary>The path of the field that is wrong, such as "edits[2].write.content"; empty when no field is.</summary>
    public string Field => Failure.Field;

    /// <summary>How long to wait before trying again; null when that is not known.</summary>
    public TimeSpan? RetryAfter => Failure.RetryAfter;

    private protected CallFailure Failure { get; }
}

/// <summary>The daemon ended or does not answer. Calls that are safe to repeat were repeated already.</summary>
public sealed class DaemonUnavailableException : LorekeeperCallException
{
    internal DaemonUnavailableException(CallFailure failure)
        : base(failure)
    {
    }
}

/// <summary>The contract has the call, and this daemon does not answer it: bring a newer daemon, or test for it with
/// <see cref="LorekeeperClient.GetInfoAsync"/>.</summary>
public sealed class NotServedException : LorekeeperCallException
{
    internal NotServedException(CallFailure failure)
        : base(failure)
    {
    }
}

/// <summary>What was to be changed is at another version than the caller knows. Nothing was changed: read again, repeat.</summary>
public sealed class VersionConflictException : LorekeeperCallException
{
    internal VersionConflictException(CallFailure failure)
        : base(failure)
    {
    }

    /// <summary>The version that is stored; null when the daemon did not tell.</summary>
    public int? CurrentVersion =>
        Details.TryGetValue("current_version", out var text) && int.TryParse(text, out var version) ? version : null;
}

/// <summary>One edit of a memory document failed, and so none was made.</summary>
public sealed class EditFailedException : LorekeeperCallException
{
    internal EditFailedException(CallFailure failure, V1.EditFailure edit)
        : base(failure)
    {
        EditIndex = edit.EditIndex;
        CurrentVersion = edit.CurrentVersion;
        NearestLines = edit.NearestLines;
    }

    /// <summary>The place of the edit in the list, counted from 0.</summary>
    public int EditIndex { get; }

    /// <summary>The document's version; 0 when there is no document.</summary>
    public int CurrentVersion { get; }

    /// <summary>Up to three lines of the document that are nearest to the text that was not found. This is memory text.</summary>
    public IReadOnlyList<string> NearestLines { get; }
}

/// <summary>A turn failed. The player's line stays stored, once; saying it again does not store it twice.</summary>
public sealed class TurnFailedException : LorekeeperCallException
{
    internal TurnFailedException(CallFailure failure, V1.TurnFailure turn)
        : base(failure) => Turn = turn;

    /// <summary>Everything that the daemon tells: the code, the backend, tools that had run, what the model said.</summary>
    public V1.TurnFailure Turn { get; }

    /// <summary>Why, as a code that a game can choose a line by.</summary>
    public V1.TurnFailureCode Why => Turn.Code;

    internal static TurnFailedException From(V1.TurnFailure turn) =>
        new(
            new CallFailure(StatusCode.Unknown, turn.Message)
            {
                Reason = turn.Reason,
                RetryAfter = turn.HasRetryAfterMs ? TimeSpan.FromMilliseconds(turn.RetryAfterMs) : null,
            },
            turn);
}
