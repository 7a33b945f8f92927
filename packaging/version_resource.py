"""The version resource of the Windows program: what Explorer and antivirus programs read."""

from __future__ import annotations

from sidecar import __version__

_TEXTS = {
    "CompanyName": "The Lorekeeper authors",
    "FileDescription": "Lorekeeper, memory for the characters of a game",
    "FileVersion": __version__,
    "InternalName": "lorekeeper",
    "LegalCopyright": "MIT licence",
    "OriginalFilename": "lorekeeper.exe",
    "ProductName": "Lorekeeper",
    "ProductVersion": __version__,
}


def version_resource() -> str:
    """The form that PyInstaller's --version-file takes."""
    numbers = (*(int(part) for part in __version__.split(".")[:3]), 0)
    texts = ", ".join(f"StringStruct({name!r}, {text!r})" for name, text in _TEXTS.items())
    return (
        f"VSVersionInfo(ffi=FixedFileInfo(filevers={numbers}, prodvers={numbers}, mask=0x3f, flags=0x0, OS=0x40004, "
        "fileType=0x1, subtype=0x0, date=(0, 0)), "
        f"kids=[StringFileInfo([StringTable('040904B0', [{texts}])]), "
        "VarFileInfo([VarStruct('Translation', [1033, 1200])])])\n"
    )
