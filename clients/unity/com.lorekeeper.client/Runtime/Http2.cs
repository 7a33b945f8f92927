#nullable enable
using System;
using System.Net.Http;
#if LOREKEEPER_HTTP2
using Cysharp.Net.Http;
#endif

namespace Lorekeeper.Unity
{
    /// <summary>The HTTP/2 handler: Unity's own handlers speak HTTP/1 only, and gRPC needs HTTP/2.</summary>
    internal static class Http2
    {
        /// <summary>Makes a handler for one connection to this machine.</summary>
        internal static HttpMessageHandler Create()
        {
#if LOREKEEPER_HTTP2
            // Http2Only: without encryption there is nothing that could negotiate the version.
            return new YetAnotherHttpHandler { Http2Only = true };
#else
            throw new NotSupportedException(
                "Lorekeeper needs the package com.cysharp.yetanotherhttphandler: Unity has no HTTP/2 of its own. Add it in "
                + "the Package Manager; the README of com.lorekeeper.client tells how.");
#endif
        }
    }
}
