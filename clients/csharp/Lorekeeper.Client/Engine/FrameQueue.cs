using System;
using System.Collections.Generic;
using System.Text;
using System.Threading;

namespace Lorekeeper;

/// <summary>
/// Carries what happens on other threads to the game's main thread: a bounded number each frame, in order, nothing lost.
/// A token that finds the queue full joins the text of the same speaker that waits; an end, a failure or a tool call
/// always has a place of its own.
/// </summary>
/// <param name="perFrame">How many are delivered each frame.</param>
/// <param name="capacity">From how many waiting on tokens are joined.</param>
/// <param name="report">Is told what a delivery throws; the deliveries after it go on.</param>
public sealed class FrameQueue(Action<Exception> report, int perFrame = 64, int capacity = 1_024) : SynchronizationContext
{
    private readonly Queue<Delivery> waiting = new();
    private readonly Dictionary<object, Delivery> lastText = [];
    private bool closed;

    /// <summary>How many wait.</summary>
    public int Count
    {
        get
        {
            lock (waiting)
            {
                return waiting.Count;
            }
        }
    }

    /// <summary>Has something done on the main thread. Any thread may call this.</summary>
    public void Post(Action action)
    {
        lock (waiting)
        {
            Add(new Delivery { Run = action });
        }
    }

    /// <summary>Has a piece of text delivered on the main thread.</summary>
    /// <param name="speaker">Whose text it is: pieces of one speaker may be joined.</param>
    /// <param name="text">The piece.</param>
    /// <param name="deliver">Takes it.</param>
    public void PostText(object speaker, string text, Action<string> deliver)
    {
        lock (waiting)
        {
            if (waiting.Count >= capacity && lastText.TryGetValue(speaker, out var last))
            {
                (last.More ??= new StringBuilder()).Append(text);
                return;
            }

            var delivery = new Delivery { Speaker = speaker, Text = text, Deliver = deliver };
            Add(delivery);
            lastText[speaker] = delivery;
        }
    }

    /// <summary>Says that what the speaker says next must not join what it said before.</summary>
    public void PostAfterText(object speaker, Action action)
    {
        lock (waiting)
        {
            lastText.Remove(speaker);
            Add(new Delivery { Run = action });
        }
    }

    /// <summary>Delivers what waits, at most the number of one frame. The main thread calls this each frame.</summary>
    /// <returns>How many were delivered.</returns>
    public int Drain()
    {
        var delivered = 0;
        while (delivered < perFrame && Take() is { } next)
        {
            delivered++;
            Deliver(next);
        }

        return delivered;
    }

    /// <summary>Drops what waits and takes nothing more: the game ends.</summary>
    public void Close()
    {
        lock (waiting)
        {
            closed = true;
            waiting.Clear();
            lastText.Clear();
        }
    }

    /// <inheritdoc/>
    public override void Post(SendOrPostCallback d, object? state) => Post(() => d(state));

    /// <inheritdoc/>
    public override SynchronizationContext CreateCopy() => this;

    private void Add(Delivery delivery)
    {
        if (!closed)
        {
            waiting.Enqueue(delivery);
        }
    }

    private Delivery? Take()
    {
        lock (waiting)
        {
            if (waiting.Count == 0)
            {
                return null;
            }

            var next = waiting.Dequeue();
            if (next.Speaker is { } speaker && lastText.TryGetValue(speaker, out var last) && last == next)
            {
                lastText.Remove(speaker);
            }

            return next;
        }
    }

    private void Deliver(Delivery next)
    {
        try
        {
            next.Run?.Invoke();
            next.Deliver?.Invoke(next.More is null ? next.Text : next.More.Insert(0, next.Text).ToString());
        }
        catch (Exception error)
        {
            report(error);
        }
    }

    private sealed class Delivery
    {
        internal Action? Run { get; init; }

        internal object? Speaker { get; init; }

        internal string Text { get; init; } = "";

        internal Action<string>? Deliver { get; init; }

        internal StringBuilder? More { get; set; }
    }
}
