using System;

namespace Godot;

[AttributeUsage(AttributeTargets.Class)]
public sealed class GlobalClassAttribute : Attribute;

[AttributeUsage(AttributeTargets.Delegate)]
public sealed class SignalAttribute : Attribute;

[AttributeUsage(AttributeTargets.Field | AttributeTargets.Property)]
public sealed class ExportAttribute : Attribute;
