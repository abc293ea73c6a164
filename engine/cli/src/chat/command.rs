//! What a line typed into a chat means.

/// What `/help` prints.
pub const HELP: &str = "\
/new (or /clear)   begin a new chat
/erase             begin a new chat, and erase what is kept on disk of all chats in the terminal
/regenerate        make the last answer anew
/system [TEXT]     show or set what the model is told before the chat
/skill [NAME]      list the skills, or give the model one; /NAME, too. What follows is asked with it
/save FILE         write the chat to a file
/stats             model, window, speed
/quit              leave (also Ctrl-D)
A backslash at the end of a line goes on with the next one. Ctrl-C stops an answer, or clears the line.";

#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Say(String),
    New,
    Erase,
    Regenerate,
    System(Option<String>),
    Skill(Option<String>),
    Save(Option<String>),
    Stats,
    Help,
    Quit,
    /// A name that is no command, and what follows it: a skill may have the name.
    Unknown(String, Option<String>),
}

impl Command {
    pub fn parse(text: &str) -> Command {
        if !text.starts_with('/') {
            return Command::Say(text.trim().to_string());
        }
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = Some(rest.trim().to_string()).filter(|rest| !rest.is_empty());
        match name {
            "/new" | "/clear" => Command::New,
            "/erase" => Command::Erase,
            "/regenerate" => Command::Regenerate,
            "/system" => Command::System(rest),
            "/skill" | "/skills" => Command::Skill(rest),
            "/save" => Command::Save(rest),
            "/stats" => Command::Stats,
            "/help" | "/?" => Command::Help,
            "/quit" | "/exit" => Command::Quit,
            other => Command::Unknown(other.to_string(), rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_begin_with_a_slash_and_text_with_anything_else() {
        assert_eq!(Command::parse(" hello "), Command::Say("hello".into()));
        assert_eq!(
            Command::parse(" /etc is a folder"),
            Command::Say("/etc is a folder".into())
        );
        assert_eq!(Command::parse("/clear"), Command::New);
        assert_eq!(
            Command::parse("/system  Be brief. "),
            Command::System(Some("Be brief.".into()))
        );
        assert_eq!(Command::parse("/save"), Command::Save(None));
        assert_eq!(Command::parse("/etc"), Command::Unknown("/etc".into(), None));
        assert_eq!(
            Command::parse("/tidy-notes Call on Monday"),
            Command::Unknown("/tidy-notes".into(), Some("Call on Monday".into()))
        );
    }
}
