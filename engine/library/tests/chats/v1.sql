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

-- What a store of version 1 had in it.

PRAGMA user_version = 1;
INSERT INTO folders (id, name) VALUES (2, 'Garden');
INSERT INTO chats (id, title, title_source, folder, pinned, created_ms, updated_ms, touched, deleted_ms, current, draft)
VALUES (3, 'Apple trees', 'person', 2, 1, 1700000000000, 1700000500000, 4, NULL, 13, 'And pears?'),
       (5, 'Old plans', 'question', NULL, 0, 1690000000000, 1690000000000, 2, 1700000600000, 14, '');
INSERT INTO turns (id, chat, parent, role, state, created_ms, last_child, model, stats, error, text)
VALUES (10, 3, NULL, 'user', 'done', 1700000000000, 13, NULL, NULL, NULL, 'When do I prune?'),
       (11, 3, 10, 'assistant', 'done', 1700000100000, NULL, 'Qwen3 4B',
        '{"model":"Qwen3 4B","promptTokens":30,"reusedPrefixTokens":12,"reusedElsewhereTokens":0,"answerTokens":4,"firstTokenMs":210,"decodeMs":190,"savedMs":80}',
        NULL, 'In February.'),
       (13, 3, 10, 'assistant', 'writing', 1700000400000, NULL, 'Qwen3 4B', NULL, NULL, 'In '),
       (14, 5, NULL, 'user', 'done', 1690000000000, NULL, NULL, NULL, NULL, 'A secret plan');
INSERT INTO pieces (turn, number, text) VALUES (13, 1, 'late '), (13, 2, 'winter');
INSERT INTO settings (key, value) VALUES ('settings', '{"theme":"dark"}');
UPDATE store SET new_chat_draft = 'Something new';
