//! Servers of tools: a real one over its standard input and output, and what it may do wrong.

use std::time::{Duration, Instant};

use reprise_engine::CancelToken;
use reprise_library::skills::servers::{ServerConfig, ServerError, ServerLimits, Servers};
use reprise_library::skills::{Permission, Settings};
use serde_json::{Map, json};

use crate::{Says, example};

fn config(argument: &str) -> ServerConfig {
    ServerConfig {
        name: "test".into(),
        command: example("tool_server").to_str().unwrap().into(),
        arguments: vec![argument.into()],
        environment: [("GIVEN".to_owned(), "yes".to_owned())].into(),
    }
}

fn limits() -> ServerLimits {
    ServerLimits {
        start: Duration::from_secs(20),
        call: Duration::from_secs(20),
        ..ServerLimits::default()
    }
}

struct Desk {
    _home: tempfile::TempDir,
    settings: Settings,
    consent: Says,
}

fn desk(permission: Permission) -> Desk {
    let home = tempfile::tempdir().unwrap();
    Desk {
        settings: Settings::in_folder(home.path()),
        _home: home,
        consent: Says::always_the_same(permission),
    }
}

impl Desk {
    fn start(&mut self, config: ServerConfig, limits: ServerLimits) -> (Servers, Vec<ServerError>) {
        let cancel = CancelToken::default();
        Servers::start(vec![config], &self.settings, &mut self.consent, limits, &cancel).unwrap()
    }
}

fn call(servers: &mut Servers, tool: &str) -> Result<reprise_library::skills::servers::Called, ServerError> {
    servers.call(tool, Map::new(), &CancelToken::default())
}

#[test]
fn a_server_is_asked_for_its_tools_and_calls_them() {
    let mut desk = desk(Permission::Always);
    let (mut servers, failures) = desk.start(config("good"), limits());
    assert!(failures.is_empty(), "{failures:?}");
    let add = servers
        .specs()
        .find(|spec| spec.name == "test__add")
        .unwrap()
        .clone();
    assert_eq!(add.description, "Adds two numbers");
    assert!(
        add.parameters["properties"]["a"]["description"].is_string(),
        "{}",
        add.parameters
    );
    let arguments = json!({"a": 2, "b": 40}).as_object().unwrap().clone();
    let called = servers
        .call("test__add", arguments, &CancelToken::default())
        .unwrap();
    assert_eq!((called.text.as_str(), called.is_error), ("42", false));
    assert_eq!(
        call(&mut servers, "test__variable").unwrap().text,
        "Some(\"yes\") None"
    );

    let failed = call(&mut servers, "test__fail").unwrap();
    assert_eq!((failed.text.as_str(), failed.is_error), ("no such thing", true));
    let wrong = call(&mut servers, "test__add").unwrap();
    assert!(
        wrong.is_error && wrong.text.contains("missing field"),
        "{wrong:?}"
    );
    assert!(call(&mut servers, "test__none").is_err());
    let much = call(&mut servers, "test__flood").unwrap();
    assert!(much.text.len() <= 16 * 1024 && much.left_out_bytes > 1_900_000);
}

#[test]
fn a_server_that_dies_or_sleeps_spoils_one_call() {
    let mut desk = desk(Permission::Once);
    let (mut servers, _) = desk.start(
        config("good"),
        ServerLimits {
            call: Duration::from_secs(5),
            ..limits()
        },
    );
    let error = call(&mut servers, "test__crash").unwrap_err().to_string();
    assert!(error.starts_with("test__crash failed"), "{error}");
    assert!(
        call(&mut servers, "test__variable").is_ok(),
        "it is started again"
    );

    let cancel = CancelToken::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            cancel.cancel();
        });
        let stopped = servers.call("test__sleep", Map::new(), &cancel).unwrap_err();
        assert!(matches!(stopped, ServerError::Cancelled), "{stopped}");
    });
    assert!(call(&mut servers, "test__variable").is_ok());
}

#[test]
fn a_call_may_take_so_long_and_no_longer() {
    let mut desk = desk(Permission::Once);
    let (mut servers, _) = desk.start(config("good"), limits());
    drop(servers);
    let short = ServerLimits {
        call: Duration::from_millis(300),
        ..limits()
    };
    (servers, _) = desk.start(config("good"), short);
    let begin = Instant::now();
    let error = call(&mut servers, "test__sleep").unwrap_err().to_string();
    assert!(error.contains("no answer within"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_server_starts_only_when_its_command_is_allowed() {
    let mut desk = desk(Permission::Deny);
    let (servers, failures) = desk.start(config("good"), limits());
    assert!(servers.specs().next().is_none());
    assert!(
        matches!(failures[0], ServerError::NotAllowed { .. }),
        "{failures:?}"
    );
    assert!(
        desk.consent.asked[0].contains("tool_server"),
        "{:?}",
        desk.consent.asked
    );

    desk.consent.permission = Permission::Always;
    desk.start(config("good"), limits());
    desk.start(config("good"), limits());
    assert_eq!(desk.consent.asked.len(), 2, "what is trusted is not asked again");
    desk.start(config("other"), limits());
    assert_eq!(desk.consent.asked.len(), 3, "another command is");
}

#[test]
fn a_server_that_does_not_come_up_is_told_with_its_last_words() {
    let mut desk = desk(Permission::Once);
    let (_, failures) = desk.start(config("broken"), limits());
    let error = failures[0].to_string();
    assert!(
        error.contains("test could not be started") && error.contains("no licence found"),
        "{error}"
    );
    let short = ServerLimits {
        start: Duration::from_millis(300),
        ..limits()
    };
    let (_, failures) = desk.start(config("silent"), short);
    assert!(failures[0].to_string().contains("said nothing"), "{failures:?}");
    let missing = ServerConfig {
        command: "/no/such/server".into(),
        ..config("")
    };
    let (_, failures) = desk.start(missing, limits());
    assert!(
        failures[0].to_string().contains("/no/such/server"),
        "{failures:?}"
    );
}
