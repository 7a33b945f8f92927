using System.Collections.Generic;

namespace Godot.Collections;

public class Dictionary : Dictionary<Variant, Variant>
{
    public Dictionary()
        : base(new ByContent())
    {
    }

    private sealed class ByContent : IEqualityComparer<Variant>
    {
        public bool Equals(Variant x, Variant y) => Equals(x.Obj, y.Obj);

        public int GetHashCode(Variant obj) => obj.Obj?.GetHashCode() ?? 0;
    }
}

public class Array : List<Variant>;
