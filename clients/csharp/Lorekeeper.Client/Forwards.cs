#if NET
using System.Runtime.CompilerServices;

// A library that was compiled against the netstandard2.1 build finds the mark of init-only properties in that assembly. Here it
// belongs to the runtime: without the forward such a library would not find a single option's setter.
[assembly: TypeForwardedTo(typeof(IsExternalInit))]
#endif
