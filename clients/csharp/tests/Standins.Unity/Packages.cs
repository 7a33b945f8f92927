#nullable enable
using System;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;

namespace Cysharp.Net.Http
{
    /// <summary>The handler that a Unity game adds; here the runtime's own does its work.</summary>
    public class YetAnotherHttpHandler : HttpMessageHandler
    {
        private readonly HttpMessageInvoker inner = new HttpMessageInvoker(new HttpClientHandler { UseProxy = false });

        public bool? Http2Only { get; set; }

        protected override Task<HttpResponseMessage> SendAsync(
            HttpRequestMessage request, CancellationToken cancellationToken) =>
            Http2Only == true
                ? inner.SendAsync(request, cancellationToken)
                : throw new InvalidOperationException("Without Http2Only the handler speaks HTTP/1, and the daemon does not.");

        protected override void Dispose(bool disposing)
        {
            inner.Dispose();
            base.Dispose(disposing);
        }
    }
}

namespace NUnit.Framework
{
    public static class Assert
    {
        public static void That(object? actual, Constraints.Constraint expression)
        {
        }
    }

    public static class Does
    {
        public static Constraints.Constraint Contain(string expected) => new Constraints.Constraint();
    }
}

namespace NUnit.Framework.Constraints
{
    public class Constraint
    {
    }
}

namespace UnityEngine.TestTools
{
    [AttributeUsage(AttributeTargets.Method)]
    public sealed class UnityTestAttribute : Attribute
    {
    }
}
