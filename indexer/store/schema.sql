-- The index: a cache of what the files say. Deleting it costs time, never data.
-- page_size, auto_vacuum, application_id and user_version are set in open.py before this runs.

-- One row a watched folder. Rows of an offline root stay searchable.
CREATE TABLE roots (
    root_id     INTEGER PRIMARY KEY AUTOINCREMENT,
    path        BLOB NOT NULL UNIQUE,              -- absolute, os.fsencode
    status      TEXT NOT NULL DEFAULT 'online',    -- online | offline
    reason      TEXT NOT NULL DEFAULT '',          -- why it is offline, a sentence
    paused      INTEGER NOT NULL DEFAULT 0,
    identity    TEXT NOT NULL DEFAULT '',          -- which volume it lies on, so that another disk is not taken for it
    settings    TEXT NOT NULL DEFAULT '{}',        -- JSON, the indexer's own
    scanned_at  REAL                               -- unix seconds of the last complete scan
) STRICT;

-- What a file says, keyed by its bytes and by what read them: a rename, move or copy points here and derives nothing anew.
CREATE TABLE contents (
    content_id    INTEGER PRIMARY KEY AUTOINCREMENT,
    content_hash  BLOB NOT NULL,
    extractor     TEXT NOT NULL,                   -- version of all that derived the chunks, e.g. 'pdf/1 chunk/1 254'
    title         TEXT NOT NULL DEFAULT '',
    note          TEXT NOT NULL DEFAULT '',        -- what the user should know, e.g. that vectors stop after so many MB
    char_count    INTEGER NOT NULL DEFAULT 0,
    chunk_count   INTEGER NOT NULL DEFAULT 0,
    complete      INTEGER NOT NULL DEFAULT 0,      -- 0 while a big file is still being written in parts
    uses          INTEGER NOT NULL DEFAULT 0,      -- documents that point here; kept by the triggers below
    UNIQUE (content_hash, extractor)
) STRICT;
CREATE INDEX contents_unused ON contents (content_id) WHERE uses = 0;

CREATE TABLE documents (
    document_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    root_id      INTEGER NOT NULL REFERENCES roots,
    path         BLOB NOT NULL,                    -- relative to the root, exact bytes, '/' between parts on every system
    path_key     TEXT NOT NULL,                    -- NFC, case folded: for matching only
    type         TEXT NOT NULL,                    -- lower-case file suffix without the dot
    size         INTEGER NOT NULL,                 -- bytes
    mtime_ns     INTEGER NOT NULL,
    content_id   INTEGER REFERENCES contents,      -- NULL: known by its name only
    UNIQUE (root_id, path)
) STRICT;
CREATE INDEX documents_by_content ON documents (content_id);
CREATE INDEX documents_by_key ON documents (root_id, path_key);

CREATE TRIGGER documents_inserted AFTER INSERT ON documents BEGIN
    UPDATE contents SET uses = uses + 1 WHERE content_id = NEW.content_id;
END;
CREATE TRIGGER documents_deleted AFTER DELETE ON documents BEGIN
    UPDATE contents SET uses = uses - 1 WHERE content_id = OLD.content_id;
END;
CREATE TRIGGER documents_repointed AFTER UPDATE OF content_id ON documents
WHEN OLD.content_id IS NOT NEW.content_id BEGIN
    UPDATE contents SET uses = uses - 1 WHERE content_id = OLD.content_id;
    UPDATE contents SET uses = uses + 1 WHERE content_id = NEW.content_id;
END;

CREATE TABLE chunks (
    chunk_id    INTEGER PRIMARY KEY AUTOINCREMENT,
    content_id  INTEGER NOT NULL REFERENCES contents,
    ordinal     INTEGER NOT NULL,
    start_char  INTEGER NOT NULL,                  -- offsets into the extracted text
    end_char    INTEGER NOT NULL,
    page        INTEGER,                           -- from 1, where the format has pages
    line        INTEGER,                           -- from 1, where the format has lines
    text        TEXT NOT NULL,
    text_hash   BLOB NOT NULL,                     -- the key of its vector: an edit re-embeds only the chunks it changed
    embed       INTEGER NOT NULL,                  -- 0: found by words only
    UNIQUE (content_id, ordinal)
) STRICT;
CREATE INDEX chunks_by_hash ON chunks (text_hash, content_id, embed);

-- Beside each chunk, how often each stem occurs: scoring a few hundred candidates reads these and no posting lists.
CREATE TABLE term_counts (
    chunk_id    INTEGER PRIMARY KEY,
    content_id  INTEGER NOT NULL,
    length      INTEGER NOT NULL,                  -- terms in the chunk
    counts      BLOB NOT NULL                      -- see terms.py
) STRICT;

-- Both hold the text as engine.search.lexical.prepare_text makes it, keyed by chunk_id. They keep no copy of it, so
-- a deletion passes the same prepared text again; secure-delete then takes it out of the index pages as well.
CREATE VIRTUAL TABLE words USING fts5(
    text, content = '', columnsize = 0, detail = full,
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
);
CREATE VIRTUAL TABLE stems USING fts5(
    text, content = '', columnsize = 0, detail = none,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
);
-- File names and titles, keyed by document_id.
CREATE VIRTUAL TABLE names USING fts5(
    text, content = '', columnsize = 0, detail = full,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
INSERT INTO stems (stems, rank) VALUES ('secure-delete', 1);
INSERT INTO names (names, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE stem_frequencies USING fts5vocab (stems, 'row');
-- The exact text each row of `names` was made from, needed to delete it.
CREATE TABLE name_texts (document_id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;

-- A generation is one model, precision and prefix. The active one answers searches; a building one takes over when
-- every chunk has a vector in it.
CREATE TABLE generations (
    generation   INTEGER PRIMARY KEY AUTOINCREMENT,
    fingerprint  TEXT NOT NULL,
    model        TEXT NOT NULL,                    -- catalog name or folder, to load the encoder of the query with
    precision    TEXT NOT NULL,
    dim          INTEGER NOT NULL,                 -- of a vector
    token_dim    INTEGER NOT NULL,                 -- of a token vector
    state        TEXT NOT NULL                     -- active | building | retired
) STRICT;
CREATE UNIQUE INDEX generations_by_state ON generations (state) WHERE state <> 'retired';

-- The vectors of record. sqlite-vec measures distances on the column.
CREATE TABLE vectors (
    vector_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    generation  INTEGER NOT NULL REFERENCES generations,
    text_hash   BLOB NOT NULL,
    vector      BLOB NOT NULL,                     -- dim float32, unit length
    UNIQUE (text_hash, generation)
) STRICT;
CREATE INDEX vectors_by_generation ON vectors (generation);

-- One sign bit a dimension for each token of the text, specials and prefix left out: token_dim / 8 bytes a token.
CREATE TABLE token_bits (vector_id INTEGER PRIMARY KEY, bits BLOB NOT NULL) STRICT;

-- The compact code that large scans read: runs of ascending vector_id, merged by size level. Ids lie apart from codes, so
-- that a deletion rewrites only them.
CREATE TABLE segments (
    segment_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    generation  INTEGER NOT NULL REFERENCES generations,
    level       INTEGER NOT NULL,
    first_id    INTEGER NOT NULL,
    last_id     INTEGER NOT NULL,
    rows        INTEGER NOT NULL,
    codes       BLOB NOT NULL,                     -- (rows, dim) int8
    scales      BLOB NOT NULL                      -- (rows,) float32
) STRICT;
CREATE INDEX segments_by_range ON segments (generation, first_id);
CREATE TABLE segment_ids (
    segment_id  INTEGER PRIMARY KEY REFERENCES segments ON DELETE CASCADE,
    version     INTEGER NOT NULL DEFAULT 0,        -- counts up whenever ids change
    dead        INTEGER NOT NULL DEFAULT 0,
    ids         BLOB NOT NULL                      -- (rows,) int64 vector_id, -1 where deleted
) STRICT;

-- Chunks that have no vector in the generation being filled. Ordered by how far into its file a chunk lies, so that
-- no file waits for a huge one.
CREATE TABLE pending (
    chunk_id  INTEGER PRIMARY KEY,
    turn      INTEGER NOT NULL                     -- ordinal / 64
) STRICT;
CREATE INDEX pending_by_turn ON pending (turn, chunk_id);

-- Paths to look at. Taking an item does not remove it: only `done` does, so a killed process looks again.
CREATE TABLE queue (
    queue_id      INTEGER PRIMARY KEY AUTOINCREMENT,
    root_id       INTEGER NOT NULL REFERENCES roots,
    path          BLOB NOT NULL,
    kind          TEXT NOT NULL,                   -- file | directory | ... the indexer's own words
    priority      INTEGER NOT NULL,                -- higher first
    attempts      INTEGER NOT NULL DEFAULT 0,      -- counted before the work begins, so that a crash counts
    not_before_s  REAL NOT NULL DEFAULT 0,         -- unix seconds
    UNIQUE (root_id, path)
) STRICT;
CREATE INDEX queue_by_turn ON queue (priority DESC, queue_id);

CREATE TABLE failures (
    root_id      INTEGER NOT NULL REFERENCES roots,
    path         BLOB NOT NULL,
    kind         TEXT NOT NULL,
    message      TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    retry_at_s   REAL,                             -- unix seconds; NULL: only when the file changes or the user asks
    quarantined  INTEGER NOT NULL DEFAULT 0,
    size         INTEGER,                          -- of the file when it failed, to see that it changed
    mtime_ns     INTEGER,
    failed_at_s  REAL NOT NULL,
    PRIMARY KEY (root_id, path)
) STRICT;

-- Totals kept in step with the tables, so that status and BM25 count nothing.
CREATE TABLE totals (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO totals VALUES ('chunks', 0), ('terms', 0);

CREATE TABLE stamps (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
