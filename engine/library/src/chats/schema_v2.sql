-- The chats' format, version 2: what a question was given to be answered from, in its place in the prompt before the
-- question: passages of documents, earlier exchanges of the chat, skills. It stays with the question, so that the prompt
-- of every later question begins as this one did.
CREATE TABLE given (
    turn   INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    -- What a person sees, and what an answer may name it by.
    label  TEXT NOT NULL,
    -- The text as the model reads it.
    text   TEXT NOT NULL,
    -- Where it comes from, as JSON.
    source TEXT NOT NULL,
    PRIMARY KEY (turn, number)
) STRICT, WITHOUT ROWID;
