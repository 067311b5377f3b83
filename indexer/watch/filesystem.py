"""What kind of place a folder is, and what kind of thing a directory entry is, without opening anything."""

from __future__ import annotations

import os
import stat
import sys
from typing import Literal

import psutil

_NETWORK = frozenset(
    "nfs nfs4 cifs smb3 smbfs afs ceph 9p ncpfs afpfs webdav davfs glusterfs virtiofs lustre fuse.sshfs fuse.rclone "
    "fuse.gvfsd-fuse fuse.davfs2 fuse.s3fs fuse.glusterfs".split()
)
# Their directories keep their inode for as long as they exist; FAT and many of FUSE number anew at each mount.
_LASTING_INODES = frozenset("ext2 ext3 ext4 xfs btrfs f2fs zfs jfs apfs hfs ntfs tmpfs ramfs overlay bcachefs".split())
_PSEUDO = frozenset(["proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs"])

_SF_DATALESS = 0x40000000  # macOS: the content is in the cloud
_WINDOWS_OFFLINE = 0x1000  # FILE_ATTRIBUTE_OFFLINE
_WINDOWS_RECALL_ON_OPEN = 0x40000
_WINDOWS_RECALL_ON_DATA = 0x400000

EntryKind = Literal["file", "directory", "placeholder", "other"]


def entry_kind(status: os.stat_result) -> EntryKind:
    """What an entry is, from its `lstat`. Links and devices are "other"; opening a placeholder would download it."""
    attributes = getattr(status, "st_file_attributes", 0)
    reparse_tag = getattr(status, "st_reparse_tag", 0)
    if reparse_tag in (getattr(stat, "IO_REPARSE_TAG_SYMLINK", -1), getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1)):
        return "other"
    if stat.S_ISDIR(status.st_mode):
        return "directory"
    if not stat.S_ISREG(status.st_mode):
        return "other"
    if attributes & (_WINDOWS_OFFLINE | _WINDOWS_RECALL_ON_OPEN | _WINDOWS_RECALL_ON_DATA):
        return "placeholder"
    if sys.platform == "darwin" and getattr(status, "st_flags", 0) & _SF_DATALESS:
        return "placeholder"
    return "file"


def filesystem_type(path: bytes) -> str:
    """The type of the file system that holds a folder, as the system names it; "" where that cannot be told."""
    text = os.path.realpath(os.fsdecode(path))
    best, kind = -1, ""
    for partition in psutil.disk_partitions(all=True):
        point = partition.mountpoint
        inside = text == point or text.startswith(point.rstrip(os.sep) + os.sep)
        if inside and len(point) >= best:
            best, kind = len(point), partition.fstype.lower()
    return kind


def is_network(kind: str) -> bool:
    """Whether changes made elsewhere give no events here, and a drop-out may look like an empty folder."""
    return kind in _NETWORK


def is_pseudo(kind: str) -> bool:
    """Whether the "files" are the kernel's own talk."""
    return kind in _PSEUDO


def mount_points(under: bytes) -> set[bytes]:
    """The directories below a folder on which something is mounted, relative to it, '/' between parts.

    Folders of the same volume that are bound to another place are among them, though no device number betrays them.
    """
    top = os.fsencode(os.path.join(os.path.realpath(os.fsdecode(under)), ""))
    points = (os.fsencode(partition.mountpoint) for partition in psutil.disk_partitions(all=True))
    below = (point[len(top) :] for point in points if point.startswith(top))
    return {point.replace(os.fsencode(os.sep), b"/") for point in below if point}


def volume_identity(path: bytes) -> str:
    """Names the volume that a folder lies on, across restarts where the system can tell; "" where it cannot.

    Never the device number: that changes from one start to the next.
    """
    if sys.platform == "win32":
        status = os.stat(os.fsdecode(path))
        return f"serial:{status.st_dev:x}"  # Windows gives the volume's serial number here
    try:
        filesystem = os.statvfs(path)
    except OSError:
        return ""
    if filesystem.f_fsid:
        return f"fsid:{filesystem.f_fsid:x}"
    kind = filesystem_type(path)  # many of FUSE have no number
    return f"type:{kind}" if kind else ""


def folder_identity(path: bytes) -> str:
    """Names a folder: its volume and, where that lasts, its inode, for a folder bound to another place of the same
    volume leaves the same volume behind when it goes. "" where nothing can be told."""
    try:
        volume, inode = volume_identity(path), os.stat(path).st_ino
    except OSError:
        return ""
    return f"{volume} inode:{inode:x}" if volume and filesystem_type(path) in _LASTING_INODES else volume


def same_folder(before: str, now: str) -> bool:
    """Whether two names of `folder_identity` may be of one folder; a part that either lacks says nothing."""
    return before != "" and all(was == is_now for was, is_now in zip(before.split(), now.split(), strict=False))


def proves_sameness(before: str, now: str) -> bool:
    """Whether it is certainly the same folder: a connection that dropped out may leave the volume's name alone."""
    return before == now and " inode:" in now
