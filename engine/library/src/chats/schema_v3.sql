-- The chats' format, version 3: what an answer did with tools, as the person was told it: skills it chose, scripts that ran,
-- calls that were not done. The model is never told of these rows; what it was told of calls is in `given`.
CREATE TABLE steps (
    turn   INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    -- As JSON.
    step   TEXT NOT NULL,
    PRIMARY KEY (turn, number)
) STRICT, WITHOUT ROWID;
