using System.Runtime.CompilerServices;

[assembly: InternalsVisibleTo("Lorekeeper.Client.Tests")]
