-- The chats' format, version 4: what the next message of a chat is asked with beside its text, as JSON of whoever shows it;
-- nothing where none was picked.
ALTER TABLE chats ADD COLUMN draft_with TEXT NOT NULL DEFAULT '';
ALTER TABLE store ADD COLUMN new_chat_draft_with TEXT NOT NULL DEFAULT '';
