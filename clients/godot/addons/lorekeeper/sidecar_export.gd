@tool
extends EditorExportPlugin
## Puts the built daemon beside the exported game.
##
## It takes res://sidecar/<platform>/lorekeeper and copies it to the folder of the game's program.
## On macOS the result of an export is an archive: there it only says what to do.

const SOURCE := "res://sidecar"
const FOLDER := "lorekeeper"


func _get_name() -> String:
	return "LorekeeperSidecar"


func _export_begin(features: PackedStringArray, _is_debug: bool, path: String, _flags: int) -> void:
	if features.has("macos"):
		push_warning(
			"Lorekeeper: put sidecar/macos/lorekeeper into Contents/Resources of the application."
		)
		return
	for platform: String in ["windows", "linux"]:
		if features.has(platform):
			_copy_beside(platform, path)


func _copy_beside(platform: String, game_path: String) -> void:
	var source := SOURCE.path_join(platform).path_join(FOLDER)
	if not DirAccess.dir_exists_absolute(source):
		push_error(
			"Lorekeeper: there is no built daemon in %s; the game will not find one." % source
		)
		return
	var target := game_path.get_base_dir().path_join(FOLDER)
	var error := _copy_folder(source, target)
	if error != OK:
		push_error(
			"Lorekeeper: the daemon could not be copied to %s: %s" % [target, error_string(error)]
		)


func _copy_folder(source: String, target: String) -> Error:
	var error := DirAccess.make_dir_recursive_absolute(target)
	for folder in DirAccess.get_directories_at(source):
		if error == OK:
			error = _copy_folder(source.path_join(folder), target.path_join(folder))
	for file in DirAccess.get_files_at(source):
		if error == OK:
			error = _copy_file(source.path_join(file), target.path_join(file))
	return error


## Keeps the permission to run, which a plain copy may lose.
func _copy_file(source: String, target: String) -> Error:
	var error := DirAccess.copy_absolute(source, target)
	if error == OK and OS.get_name() != "Windows":
		var mode := FileAccess.get_unix_permissions(ProjectSettings.globalize_path(source))
		error = FileAccess.set_unix_permissions(target, mode)
	return error
