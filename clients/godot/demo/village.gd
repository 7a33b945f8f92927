extends Control
## Two NPCs who remember. Mira and Orin answer from lines that are written here, so no language
## model is needed; give their roles a backend to let one speak.

const ROLES := [
	{
		"role_id": "DemoMerchant",
		"system_prompt": "You are Mira, who sells lamps at the gate.",
		"persist_history": true,
		"backend_id": "offline",
		"offline_lines":
		["A lamp for the road?", "The wolf you spared came back last night.", "Mind the step."],
	},
	{
		"role_id": "DemoGuard",
		"system_prompt": "You are Orin, who guards the gate and trusts nobody.",
		"persist_history": true,
		"backend_id": "offline",
		"offline_lines":
		["State your business.", "The gate closes at dusk.", "I have my eye on you."],
	},
]

var _checkpoint := ""
var _speaker: Node

@onready var _mira: Node = $Mira
@onready var _orin: Node = $Orin
@onready var _story: RichTextLabel = %Story
@onready var _line: LineEdit = %Line
@onready var _who: OptionButton = %Who
@onready var _load: Button = %Load
@onready var _state: Label = %State


func _ready() -> void:
	Lorekeeper.connect("Started", _on_started)
	Lorekeeper.connect("Failed", _on_failed)
	Lorekeeper.connect("Saved", _on_saved)
	Lorekeeper.connect("Loaded", _on_loaded)
	for npc: Node in [_mira, _orin]:
		npc.connect("TokenReceived", _on_token)
		npc.connect("Completed", _on_completed)
		npc.connect("Failed", _on_failed)
	_who.add_item("Mira")
	_who.add_item("Orin")


func _on_started() -> void:
	for role: Dictionary in ROLES:
		Lorekeeper.PutRole(role)
	_state.text = "Ready"


func _on_line_submitted(text: String) -> void:
	if text.strip_edges().is_empty():
		return
	_line.clear()
	_speaker = _mira if _who.selected == 0 else _orin
	_story.append_text("\n[b]You[/b]: %s\n[b]%s[/b]: " % [text, _speaker.name])
	_speaker.AppendMemory("The player said: %s" % text)
	_speaker.Say(text)


func _on_token(token: String) -> void:
	_story.append_text(token)


func _on_completed(_text: String) -> void:
	_story.append_text("\n")


func _on_failed(reason: String, message: String) -> void:
	_state.text = "%s: %s" % [reason, message]


func _on_save_pressed() -> void:
	Lorekeeper.SaveGame("demo")


func _on_saved(checkpoint_id: String) -> void:
	_checkpoint = checkpoint_id
	_load.disabled = false
	_state.text = "Saved"


func _on_load_pressed() -> void:
	Lorekeeper.LoadGame(_checkpoint)


func _on_loaded(_checkpoint_id: String) -> void:
	_story.clear()
	_state.text = "Loaded: they remember what they knew then"
