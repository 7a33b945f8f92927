// Figures of the C# client against a real daemon, in one run: calls from C# beside the same calls from Python, what a token
// allocates, how soon a daemon is gone after its game.
//
//     dotnet run -c Release --project clients/csharp/benchmarks
using Lorekeeper.Benchmarks;

await CallOverhead.MeasureAsync();
TokenAllocation.Measure();
await ProcessEnd.MeasureAsync();
