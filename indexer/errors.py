"""Known trouble of the indexer: each error is one sentence that can be shown as it is."""


class IndexerError(Exception):
    """A known fault: what happened, to which object, and what to do about it."""


class StoreError(IndexerError):
    """The index file cannot be opened, read or written; the sentence names the file."""


class StoreVersionError(StoreError):
    """The index was written by a newer version of the program."""


class StoreBusyError(StoreError):
    """Another process holds the index for writing."""


class StoreDamagedError(StoreError):
    """The index file is damaged; deleting it costs time, never data."""
