extends Node
## Plays a scene without a window and ends with 0 when everything was as it should be, else 1:
## the daemon starts, an NPC remembers, answers, is saved, forgets by loading, and nothing is
## left running.
##
##     godot --headless --path clients/godot res://self_test/self_test.tscn

const PATIENCE_SECONDS := 60.0
const ROLE := {
	"role_id": "SelfTest",
	"backend_id": "offline",
	"offline_lines": ["I remember the wolf."],
}

var _heard := ""
var _failed := false

@onready var _npc: Node = $Npc


func _ready() -> void:
	get_tree().create_timer(PATIENCE_SECONDS).timeout.connect(_give_up)
	Lorekeeper.connect("Failed", _on_failed)
	_npc.connect("Failed", _on_failed)
	_npc.connect("TokenReceived", func(token: String) -> void: _heard += token)
	_play()


func _play() -> void:
	if not Lorekeeper.IsRunning:
		await Signal(Lorekeeper, "Started")
	print("daemon: process ", Lorekeeper.DaemonProcessId)
	Lorekeeper.PutRole(ROLE)
	await Signal(Lorekeeper, "RoleSet")

	var fact := "The player spared the wolf. %d" % Time.get_ticks_usec()
	_npc.AppendMemory(fact)
	var known: String = await Signal(_npc, "MemoryRead")
	_expect(known.contains(fact), "the NPC remembers what it was told")

	_npc.Say("Do you remember the wolf?")
	var reply: String = await Signal(_npc, "Completed")
	_expect(reply == "I remember the wolf.", "the NPC answers")
	_expect(_heard == reply, "the tokens are the whole answer")

	Lorekeeper.SaveGame("self test")
	var checkpoint: String = await Signal(Lorekeeper, "Saved")
	_npc.AppendMemory("This never happened.")
	await Signal(_npc, "MemoryRead")
	Lorekeeper.LoadGame(checkpoint)
	await Signal(Lorekeeper, "Loaded")
	_npc.ReadMemory()
	var restored: String = await Signal(_npc, "MemoryRead")
	_expect(restored == known, "loading brings back what the NPC knew")

	var folder: String = ProjectSettings.get_setting("lorekeeper/data_folder")
	Lorekeeper.Stop()
	_expect(not FileAccess.file_exists(folder.path_join("daemon.json")), "nothing keeps running")
	if not _failed:
		print("self test: passed")
		get_tree().quit(0)


func _expect(holds: bool, what: String) -> void:
	print("ok: " if holds else "NOT: ", what)
	if not holds:
		_end_badly("not as it should be: " + what)


func _on_failed(reason: String, message: String) -> void:
	_end_badly("%s: %s" % [reason, message])


func _give_up() -> void:
	_end_badly("no answer within %d seconds" % PATIENCE_SECONDS)


func _end_badly(why: String) -> void:
	_failed = true
	printerr("self test: ", why)
	Lorekeeper.Stop()
	get_tree().quit(1)
