"""The version resource of the Windows executables, in the notation that PyInstaller reads."""

from __future__ import annotations

DESCRIPTIONS = {"inkling": "Inkling, command line", "inkling-window": "Inkling"}


def text(version: str, name: str) -> str:
    """What Windows shows in the properties of NAME.exe."""
    numbers = tuple(int(part) for part in version.split(".")[:3])
    numbers = (*numbers, *([0] * (4 - len(numbers))))
    strings = {
        "CompanyName": "The Inkling authors",
        "FileDescription": DESCRIPTIONS[name],
        "FileVersion": version,
        "InternalName": name,
        "LegalCopyright": "Apache-2.0",
        "OriginalFilename": f"{name}.exe",
        "ProductName": "Inkling",
        "ProductVersion": version,
    }
    rows = ", ".join(f"StringStruct({key!r}, {value!r})" for key, value in strings.items())
    return (
        f"VSVersionInfo(ffi=FixedFileInfo(filevers={numbers}, prodvers={numbers}, mask=0x3f, flags=0x0, OS=0x40004, "
        f"fileType=0x1, subtype=0x0, date=(0, 0)), kids=[StringFileInfo([StringTable('040904B0', [{rows}])]), "
        "VarFileInfo([VarStruct('Translation', [1033, 1200])])])\n"
    )
