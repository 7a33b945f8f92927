using Godot;

namespace Lorekeeper.GodotAddon;

// What Godot's source generator writes for each signal.
public partial class LorekeeperNode
{
    public new class SignalName : Node.SignalName
    {
        public static readonly StringName Started = nameof(Started);
        public static readonly StringName Failed = nameof(Failed);
        public static readonly StringName Saved = nameof(Saved);
        public static readonly StringName Loaded = nameof(Loaded);
        public static readonly StringName RoleSet = nameof(RoleSet);
    }
}

public partial class LorekeeperNpc
{
    public new class SignalName : Node.SignalName
    {
        public static readonly StringName TokenReceived = nameof(TokenReceived);
        public static readonly StringName TakenBack = nameof(TakenBack);
        public static readonly StringName Completed = nameof(Completed);
        public static readonly StringName Failed = nameof(Failed);
        public static readonly StringName ToolCalled = nameof(ToolCalled);
        public static readonly StringName MemoryRead = nameof(MemoryRead);
        public static readonly StringName Remembered = nameof(Remembered);
        public static readonly StringName Recalled = nameof(Recalled);
    }
}
