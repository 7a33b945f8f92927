#nullable enable
using System.Collections;
using NUnit.Framework;
using UnityEngine;
using UnityEngine.TestTools;

namespace Lorekeeper.Unity.Tests
{
    /// <summary>Runs in Unity's test runner, in play mode, with a daemon in StreamingAssets or in LOREKEEPER_COMMAND.</summary>
    public sealed class PlayTests
    {
        [UnityTest]
        public IEnumerator An_npc_remembers_what_it_was_told()
        {
            var game = new GameObject("Lorekeeper", typeof(LorekeeperBehaviour));
            var npc = new GameObject("Mira").AddComponent<NpcBehaviour>();
            npc.ActorId = "play-test";
            npc.Remember("The player spared the wolf.");
            string? known = null;
            var waited = 0f;
            while ((known == null || !known.Contains("spared the wolf")) && waited < 30f)
            {
                npc.ReadMemory(text => known = text);
                waited += 0.5f;
                yield return new WaitForSeconds(0.5f);
            }

            Assert.That(known, Does.Contain("spared the wolf"));
            Object.Destroy(npc.gameObject);
            Object.Destroy(game);
        }
    }
}
