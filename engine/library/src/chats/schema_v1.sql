-- The chats' format, version 1. Ids are never used again (AUTOINCREMENT), so that nothing kept elsewhere under an id
-- can come to belong to something else. Times are milliseconds since 1970; nothing is ordered by them, because clocks
-- are set back: order is by ids and by `touched`.

PRAGMA application_id = 0x52455052;

CREATE TABLE folders (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE chats (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    title        TEXT,
    title_source TEXT NOT NULL DEFAULT 'none' CHECK (title_source IN ('none', 'question', 'model', 'person')),
    folder       INTEGER REFERENCES folders (id) ON DELETE SET NULL,
    pinned       INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    created_ms   INTEGER NOT NULL,
    updated_ms   INTEGER NOT NULL,
    -- Greater means something was said later.
    touched      INTEGER NOT NULL,
    -- When it was put away; erased for good some time after.
    deleted_ms   INTEGER,
    -- The last turn of the branch that is shown. No foreign key: erasing would look through all chats for each turn.
    current      INTEGER,
    draft        TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX chats_by_touched ON chats (touched);
CREATE INDEX chats_by_folder ON chats (folder);

CREATE TABLE turns (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    chat       INTEGER NOT NULL REFERENCES chats (id),
    -- A child is younger than its parent, so a path upwards always ends. No cascade: SQLite follows it 1,000 deep.
    parent     INTEGER REFERENCES turns (id),
    role       TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    state      TEXT NOT NULL CHECK (state IN ('writing', 'done', 'stopped', 'limit', 'window', 'repeating',
                                              'interrupted', 'failed')),
    created_ms INTEGER NOT NULL,
    -- The child that was last shown, for coming back to a branch where one was. A hint, checked when used.
    last_child INTEGER,
    model      TEXT,
    stats      TEXT,
    error      TEXT,
    text       TEXT NOT NULL,
    CHECK (parent < id)
) STRICT;
CREATE INDEX turns_by_chat ON turns (chat, parent);
CREATE INDEX turns_by_parent ON turns (parent);
CREATE INDEX turns_writing ON turns (id) WHERE state = 'writing';

-- The text of an answer as it comes, folded into the turn at its end.
CREATE TABLE pieces (
    turn   INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    text   TEXT NOT NULL,
    PRIMARY KEY (turn, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row: what belongs to no chat.
CREATE TABLE store (
    one            INTEGER PRIMARY KEY CHECK (one = 1),
    new_chat_draft TEXT NOT NULL DEFAULT '',
    -- Rows were erased whose bytes may still be in the file.
    scrub_due      INTEGER NOT NULL DEFAULT 0 CHECK (scrub_due IN (0, 1))
) STRICT;
INSERT INTO store (one) VALUES (1);

-- Search by runs of three characters: it finds parts of words, and words of scripts without spaces.
CREATE VIRTUAL TABLE title_index USING fts5 (
    title, content = 'chats', content_rowid = 'id', tokenize = 'trigram remove_diacritics 1'
);
CREATE VIRTUAL TABLE text_index USING fts5 (
    text, content = 'turns', content_rowid = 'id', tokenize = 'trigram remove_diacritics 1'
);

CREATE TRIGGER title_added AFTER INSERT ON chats BEGIN
    INSERT INTO title_index (rowid, title) VALUES (new.id, new.title);
END;
CREATE TRIGGER title_changed AFTER UPDATE OF title ON chats BEGIN
    INSERT INTO title_index (title_index, rowid, title) VALUES ('delete', old.id, old.title);
    INSERT INTO title_index (rowid, title) VALUES (new.id, new.title);
END;
CREATE TRIGGER title_removed AFTER DELETE ON chats BEGIN
    INSERT INTO title_index (title_index, rowid, title) VALUES ('delete', old.id, old.title);
END;
CREATE TRIGGER text_added AFTER INSERT ON turns BEGIN
    INSERT INTO text_index (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER text_changed AFTER UPDATE OF text ON turns BEGIN
    INSERT INTO text_index (text_index, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO text_index (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER text_removed AFTER DELETE ON turns BEGIN
    INSERT INTO text_index (text_index, rowid, text) VALUES ('delete', old.id, old.text);
END;
