; The Windows installer, for Inno Setup 6. Made after `python packaging\build.py --formats zip`:
;   iscc /DVersion=0.1.0 /DProgram=dist\inkling-0.1.0-windows-x86_64 packaging\windows\inkling.iss
; It installs for one user without asking for an administrator, or for all users when run as one.
#ifndef Version
  #error Say /DVersion=...
#endif
#ifndef Program
  #error Say /DProgram=... (the folder that packaging\build.py made)
#endif

[Setup]
; Never change this: by it Windows knows that a new version replaces the old one.
AppId={{6B1C4F0E-6E5A-4B0C-9D0E-1F6B7C9E2A41}
AppName=Inkling
AppVersion={#Version}
AppPublisher=The Inkling authors
DefaultDirName={autopf}\Inkling
DefaultGroupName=Inkling
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
PrivilegesRequiredOverridesAllowed=dialog commandline
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
SourceDir=..\..
OutputDir=dist
OutputBaseFilename=inkling-{#Version}-windows-x86_64-setup
SetupIconFile={#Program}\inkling.ico
LicenseFile=LICENSE
UninstallDisplayIcon={app}\inkling-window.exe
Compression=lzma2/max
SolidCompression=yes
CloseApplications=yes

[InstallDelete]
; Files of an older version that the new one no longer has.
Type: filesandordirs; Name: "{app}\_internal"
Type: filesandordirs; Name: "{app}\licences"

[Files]
Source: "{#Program}\*"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion

[Tasks]
Name: desktopicon; Description: "A symbol on the desktop"; Flags: unchecked

[Icons]
Name: "{group}\Inkling"; Filename: "{app}\inkling-window.exe"
Name: "{autodesktop}\Inkling"; Filename: "{app}\inkling-window.exe"; Tasks: desktopicon

[Run]
Filename: "{app}\inkling-window.exe"; Description: "Open Inkling"; Flags: nowait postinstall skipifsilent
