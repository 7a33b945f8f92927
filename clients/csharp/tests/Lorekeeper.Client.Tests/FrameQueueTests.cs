using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using Xunit;

namespace Lorekeeper.Tests;

public sealed class FrameQueueTests
{
    private readonly List<string> delivered = [];
    private readonly List<Exception> reported = [];

    [Fact]
    public void A_frame_delivers_no_more_than_its_share_and_the_rest_comes_later()
    {
        var frames = new FrameQueue(reported.Add, perFrame: 2);
        PostTexts(frames, "a", "b", "c");
        Assert.Equal(2, frames.Drain());
        Assert.Equal(["a", "b"], delivered);
        Assert.Equal(1, frames.Drain());
        Assert.Equal(["a", "b", "c"], delivered);
    }

    [Fact]
    public void A_full_queue_joins_tokens_and_loses_none_and_never_the_last()
    {
        var frames = new FrameQueue(reported.Add, perFrame: 100, capacity: 2);
        PostTexts(frames, "a", "b", "c", "d");
        frames.PostAfterText(this, () => delivered.Add("completed"));
        frames.Drain();
        Assert.Equal(["a", "bcd", "completed"], delivered);
    }

    [Fact]
    public void What_comes_after_an_end_is_not_joined_with_what_was_before()
    {
        var frames = new FrameQueue(reported.Add, perFrame: 100, capacity: 1);
        PostTexts(frames, "a");
        frames.PostAfterText(this, () => delivered.Add("taken back"));
        PostTexts(frames, "b");
        frames.Drain();
        Assert.Equal(["a", "taken back", "b"], delivered);
    }

    [Fact]
    public void A_delivery_that_throws_is_reported_and_the_next_is_made()
    {
        var frames = new FrameQueue(reported.Add);
        frames.Post((Action)(() => throw new InvalidOperationException("in the game")));
        PostTexts(frames, "a");
        frames.Drain();
        Assert.Equal("in the game", reported.Single().Message);
        Assert.Equal(["a"], delivered);
    }

    [Fact]
    public void A_closed_queue_delivers_nothing_more()
    {
        var frames = new FrameQueue(reported.Add);
        PostTexts(frames, "a");
        frames.Close();
        PostTexts(frames, "b");
        Assert.Equal(0, frames.Drain());
    }

    [Fact]
    public async Task Tokens_of_many_threads_all_arrive()
    {
        var frames = new FrameQueue(reported.Add, perFrame: 7, capacity: 10);
        var speakers = Enumerable.Range(0, 8).Select(number => $"{number}").ToList();
        await Task.WhenAll(speakers.Select(speaker => Task.Run(() =>
        {
            for (var token = 0; token < 1_000; token++)
            {
                frames.PostText(speaker, speaker, delivered.Add);
            }
        })));
        while (frames.Drain() > 0)
        {
        }

        var counts = string.Concat(delivered).GroupBy(token => token).Select(group => group.Count());
        Assert.Equal(Enumerable.Repeat(1_000, 8), counts);
    }

    private void PostTexts(FrameQueue frames, params string[] texts)
    {
        foreach (var text in texts)
        {
            frames.PostText(this, text, delivered.Add);
        }
    }
}
