#nullable enable
using Lorekeeper;
using Lorekeeper.Unity;
using UnityEngine;

/// <summary>
/// A chat box, a save and a load button. Put it on an object beside an NpcBehaviour with the actor "mira" and the backend
/// "offline", and a LorekeeperBehaviour on an object of its own.
/// </summary>
public sealed class Village : MonoBehaviour
{
    [SerializeField]
    private LorekeeperBehaviour? lorekeeper = null;

    [SerializeField]
    private NpcBehaviour? mira = null;

    private string story = "";
    private string line = "";
    private string checkpoint = "";

    private void Start()
    {
        mira!.Offer(NpcTool.Create(
            "open_gate",
            "Opens the gate.",
            ToolParameter.Text("gate", "Which gate."),
            gate => System.Threading.Tasks.Task.FromResult($"The {gate} gate is open.")).Mutating());
        mira.TokenReceived.AddListener(token => story += token);
        mira.Completed.AddListener(_ => story += "\n");
        mira.Failed.AddListener((_, message) => story += $"[{message}]\n");
        lorekeeper!.Saved.AddListener(id => checkpoint = id);
        lorekeeper.Loaded.AddListener(_ => story = "");
    }

    private void OnGUI()
    {
        GUILayout.Label(story);
        line = GUILayout.TextField(line);
        if (GUILayout.Button("Say") && line.Length > 0)
        {
            story += $"You: {line}\nMira: ";
            mira!.Remember($"The player said: {line}");
            mira.Say(line);
            line = "";
        }

        if (GUILayout.Button("Save"))
        {
            lorekeeper!.SaveGame("village");
        }

        if (checkpoint.Length > 0 && GUILayout.Button("Load"))
        {
            lorekeeper!.LoadGame(checkpoint);
        }
    }
}
