-- What a person added: files, and folders with everything in them.
CREATE TABLE sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    is_folder INTEGER NOT NULL,
    added_ms INTEGER NOT NULL
) STRICT;

-- Files. The number is made of the path.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    path TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    -- Of the bytes that were read last; none before.
    hash BLOB,
    -- waiting: to be read, or read again; until then the passages of the last reading stay.
    state TEXT NOT NULL CHECK (state IN ('waiting', 'ready', 'failed', 'skipped')),
    trouble TEXT,
    needs_password INTEGER NOT NULL DEFAULT 0,
    notes TEXT NOT NULL DEFAULT '[]',
    -- Whether the keyword index has exactly these passages.
    in_keywords INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX documents_source ON documents (source);
CREATE INDEX documents_state ON documents (state);
CREATE INDEX documents_keywords ON documents (in_keywords) WHERE in_keywords = 0;

-- The number is made of the document, the content, and which one of the same content it is.
CREATE TABLE passages (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    -- A hash of headings and text.
    content BLOB NOT NULL,
    place TEXT NOT NULL,
    headings TEXT NOT NULL,
    first_byte INTEGER NOT NULL,
    end_byte INTEGER NOT NULL,
    is_ocr INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX passages_place ON passages (document, number);
CREATE INDEX passages_content ON passages (content);

-- Vectors in binary16, one for each content.
CREATE TABLE vectors (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    content BLOB NOT NULL UNIQUE,
    vector BLOB NOT NULL
) STRICT;

-- Documents that are gone here, and not known to be gone from the keyword index.
CREATE TABLE erased (document INTEGER PRIMARY KEY) STRICT;

-- Counters that other connections watch.
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO counters VALUES ('vectors_erased', 0);

PRAGMA user_version = 1;
