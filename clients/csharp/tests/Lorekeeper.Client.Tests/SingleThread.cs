using System;
using System.Collections.Concurrent;
using System.Threading;
using System.Threading.Tasks;

namespace Lorekeeper.Tests;

/// <summary>A thread with a synchronization context that runs everything on it, as the main thread of an engine does.</summary>
internal sealed class SingleThread : SynchronizationContext, IDisposable
{
    private readonly BlockingCollection<Action> work = [];
    private readonly Thread thread;

    internal SingleThread()
    {
        thread = new Thread(Loop) { IsBackground = true };
        thread.Start();
    }

    internal int ThreadId => thread.ManagedThreadId;

    public override void Post(SendOrPostCallback d, object? state) => work.Add(() => d(state));

    public void Dispose() => work.CompleteAdding();

    internal T Run<T>(Func<T> function)
    {
        var done = new TaskCompletionSource<T>(TaskCreationOptions.RunContinuationsAsynchronously);
        work.Add(() =>
        {
            try
            {
                done.SetResult(function());
            }
            catch (Exception error)
            {
                done.SetException(error);
            }
        });
        return done.Task.WaitAsync(TimeSpan.FromSeconds(60)).GetAwaiter().GetResult();
    }

    private void Loop()
    {
        SetSynchronizationContext(this);
        foreach (var action in work.GetConsumingEnumerable())
        {
            action();
        }
    }
}
