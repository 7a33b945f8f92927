#nullable enable
using System;
using UnityEngine;
using UnityEngine.Events;

namespace Lorekeeper.Unity
{
    /// <summary>
    /// One who remembers and talks. Put it on a character, give it an id, connect its events, say something. Events come on
    /// the main thread, a bounded number each frame.
    /// </summary>
    public sealed class NpcBehaviour : MonoBehaviour
    {
        [SerializeField]
        [Tooltip("Who it is; required.")]
        private string actorId = "";

        [SerializeField]
        [Tooltip("The behaviour profile.")]
        private string roleId = "";

        [SerializeField]
        [Tooltip("The player that the memory is about; empty in a single-player game.")]
        private string playerId = "";

        [SerializeField]
        [Tooltip("\"offline\" answers without a language model; empty means what the role says.")]
        private string backendId = "";

        [SerializeField]
        private UnityEvent<string> tokenReceived = new UnityEvent<string>();

        [SerializeField]
        private UnityEvent takenBack = new UnityEvent();

        [SerializeField]
        private UnityEvent<string> completed = new UnityEvent<string>();

        [SerializeField]
        private UnityEvent<string, string> failed = new UnityEvent<string, string>();

        private NpcVoice? voice;

        /// <summary>Who it is.</summary>
        public string ActorId
        {
            get => actorId;
            set => actorId = value;
        }

        /// <summary>The behaviour profile.</summary>
        public string RoleId
        {
            get => roleId;
            set => roleId = value;
        }

        /// <summary>"offline" answers without a language model; empty means what the role says.</summary>
        public string BackendId
        {
            get => backendId;
            set => backendId = value;
        }

        /// <summary>The NPC says something more.</summary>
        public UnityEvent<string> TokenReceived => tokenReceived;

        /// <summary>What was said so far in this turn is taken back: clear the speech bubble.</summary>
        public UnityEvent TakenBack => takenBack;

        /// <summary>The reply is complete and stored.</summary>
        public UnityEvent<string> Completed => completed;

        /// <summary>A call failed: a reason for the program, and what happened and what to do.</summary>
        public UnityEvent<string, string> Failed => failed;

        /// <summary>Says a line; the reply comes by the events. Further lines wait for it.</summary>
        public void Say(string text) => Voice.Say(new Line(text) { Backend = backendId });

        /// <summary>Ends the reply that is being given.</summary>
        public void Cancel() => voice?.Cancel();

        /// <summary>Offers a tool, before the first line is said. Its delegate runs on the main thread.</summary>
        public void Offer(NpcTool tool) => Voice.Offer(tool);

        /// <summary>Adds a line to what the NPC knows.</summary>
        public void Remember(string text)
        {
            var who = Address();
            Host().Session.Run(client => client.Npc(who).Memory.AppendAsync(text), _ => { }, Fail);
        }

        /// <summary>Reads what the NPC knows; the answer comes on the main thread.</summary>
        public void ReadMemory(Action<string> answer)
        {
            var who = Address();
            Host().Session.Run(client => client.Npc(who).Memory.ReadAsync(), memory => answer(memory.Text), Fail);
        }

        private NpcVoice Voice => voice ??= Listen();

        private void OnDisable()
        {
            voice?.Dispose();
            voice = null;
        }

        private static LorekeeperBehaviour Host() =>
            LorekeeperBehaviour.Instance != null
                ? LorekeeperBehaviour.Instance
                : throw new InvalidOperationException("Put a LorekeeperBehaviour into the scene.");

        private V1.Actor Address() => new V1.Actor
        {
            SaveId = Host().SaveId,
            ActorId = actorId,
            RoleId = roleId,
            PlayerId = playerId,
        };

        private NpcVoice Listen()
        {
            var spoken = Host().Session.Voice(Address);
            spoken.TokenReceived += tokenReceived.Invoke;
            spoken.TakenBack += takenBack.Invoke;
            spoken.Completed += completed.Invoke;
            spoken.Failed += failed.Invoke;
            return spoken;
        }

        private void Fail(Exception error) => failed.Invoke(LorekeeperBehaviour.ReasonOf(error), error.Message);
    }
}
