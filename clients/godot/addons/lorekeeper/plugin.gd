@tool
extends EditorPlugin
## The editor side of Lorekeeper: the autoload, the project settings and the export step.
##
## It is GDScript on purpose: C# that runs in the editor keeps its assembly from being reloaded.

const AUTOLOAD := "Lorekeeper"
const NODE := "res://addons/lorekeeper/LorekeeperNode.cs"
const SETTINGS := {
	"lorekeeper/data_folder": "user://lorekeeper",
	"lorekeeper/command": "",
	"lorekeeper/save_id": "default",
	"lorekeeper/deliveries_per_frame": 64,
}
const SidecarExport := preload("res://addons/lorekeeper/sidecar_export.gd")

var _export: EditorExportPlugin


func _enable_plugin() -> void:
	add_autoload_singleton(AUTOLOAD, NODE)


func _disable_plugin() -> void:
	remove_autoload_singleton(AUTOLOAD)


func _enter_tree() -> void:
	for setting: String in SETTINGS:
		if not ProjectSettings.has_setting(setting):
			ProjectSettings.set_setting(setting, SETTINGS[setting])
		ProjectSettings.set_initial_value(setting, SETTINGS[setting])
	_export = SidecarExport.new()
	add_export_plugin(_export)


func _exit_tree() -> void:
	remove_export_plugin(_export)
	_export = null
