using System;

namespace Lorekeeper;

/// <summary>Whether a daemon that crashed is started again: once, and once more after each long run without a crash.</summary>
internal sealed class RestartBudget(TimeSpan window)
{
    private DateTime? lastRestart;

    /// <summary>Uses up a restart, if there is one.</summary>
    internal bool TryTake(DateTime now)
    {
        if (lastRestart is { } last && now - last < window)
        {
            return false;
        }

        lastRestart = now;
        return true;
    }
}
