//! `reprise serve` as its clients, its person and its enemies meet it.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::common::server::{PATIENCE, Reply, Server, question, tiny};
use crate::common::{assert_fails, folder, reprise, run, run_args};
use serde_json::{Value, json};

const STORY: &str =
    "Write a very long story about a lighthouse and the people of its island, chapter by chapter.";

fn text(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["choices"][0]["message"]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The pieces of a stream, put together.
fn streamed(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{reply:?}");
    let pieces = reply.events().into_iter().filter_map(|event| {
        let chunk: Value = serde_json::from_str(&event).ok()?;
        Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned())
    });
    pieces.collect()
}

#[test]
fn an_answer_tells_its_tokens_and_how_many_were_reused() {
    let server = Server::tiny(&[]);
    let request = question(
        "Good morning",
        json!({ "max_tokens": 5, "temperature": 0, "model": "tiny-llama3-q4_k" }),
    );
    let first = server.ask(&request);
    assert_eq!(first.header("content-type"), Some("application/json"));
    let answer = first.json();
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["model"], "tiny-llama3-q4_k");
    assert_eq!(answer["choices"][0]["message"]["role"], "assistant");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let usage = |reply: &Reply, name: &str| reply.json()["usage"][name].as_u64().unwrap();
    let cached = |reply: &Reply| {
        reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
            .as_u64()
            .unwrap()
    };
    assert_eq!((usage(&first, "completion_tokens"), cached(&first)), (5, 0));
    assert_eq!(usage(&first, "total_tokens"), usage(&first, "prompt_tokens") + 5);

    let second = server.ask(&request);
    assert_eq!(cached(&second), usage(&second, "prompt_tokens") - 1);
    assert_eq!(text(&first), text(&second));
    assert_ne!(first.json()["id"], second.json()["id"]);
}

#[test]
fn a_stream_gives_the_same_answer_piece_by_piece() {
    let server = Server::tiny(&[]);
    let ask = |more: Value| server.ask(&question("Good morning", more));
    let whole = text(&ask(json!({ "max_tokens": 9, "temperature": 0 })));
    let stream = ask(json!({ "max_tokens": 9, "temperature": 0, "stream": true }));
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert_eq!(streamed(&stream), whole);
    let events = stream.events();
    let chunk = |index: usize| serde_json::from_str::<Value>(&events[index]).unwrap();
    assert_eq!(events.last().unwrap(), "[DONE]");
    assert_eq!(chunk(0)["object"], "chat.completion.chunk");
    assert_eq!(chunk(0)["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(chunk(events.len() - 2)["choices"][0]["finish_reason"], "length");
    for index in 0..events.len() - 1 {
        assert_eq!(chunk(index)["id"], chunk(0)["id"]);
        assert!(chunk(index).get("usage").is_none());
    }

    let counted = ask(json!({
        "max_tokens": 9, "temperature": 0, "stream": true, "stream_options": { "include_usage": true }
    }));
    let events = counted.events();
    let last: Value = serde_json::from_str(&events[events.len() - 2]).unwrap();
    assert_eq!(
        (&last["choices"], &last["usage"]["completion_tokens"]),
        (&json!([]), &json!(9))
    );
    let before: Value = serde_json::from_str(&events[events.len() - 3]).unwrap();
    assert_eq!(
        (
            before["usage"].clone(),
            before["choices"][0]["finish_reason"].as_str()
        ),
        (Value::Null, Some("length"))
    );
}

#[test]
fn sampling_seeds_and_stops_are_the_clients() {
    let server = Server::tiny(&["--threads", "1"]);
    let ask = |more: Value| text(&server.ask(&question("Good morning", more)));
    let seeded = |seed: u64| {
        ask(json!({ "max_tokens": 12, "temperature": 1.5, "top_p": 1, "top_k": 0, "min_p": 0, "seed": seed }))
    };
    assert_eq!(seeded(7), seeded(7));
    assert_ne!(seeded(7), seeded(8));

    let greedy = ask(json!({ "max_tokens": 12, "temperature": 0 }));
    assert_eq!(
        greedy,
        ask(json!({ "max_tokens": 12, "temperature": 1, "top_p": 0 })),
        "only the likeliest is left"
    );
    let end = greedy.char_indices().nth(greedy.chars().count() / 2).unwrap().0;
    let stop: String = greedy[end..].chars().take(3).collect();
    let stopped = server.ask(&question(
        "Good morning",
        json!({ "max_tokens": 12, "temperature": 0, "stop": [stop, "never said"] }),
    ));
    assert_eq!(text(&stopped), greedy[..greedy.find(&stop).unwrap()]);
    assert_eq!(stopped.json()["choices"][0]["finish_reason"], "stop");
}

#[test]
fn parts_and_all_roles_are_read() {
    let server = Server::tiny(&[]);
    let request = json!({
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "one" }, { "type": "text", "text": "two" }] },
            { "role": "assistant", "content": "three" },
            { "role": "user", "content": "four" },
        ],
        "max_completion_tokens": 2, "frequency_penalty": 0, "presence_penalty": 0, "n": 1, "store": false,
    });
    assert_eq!(server.ask(&request).json()["usage"]["completion_tokens"], 2);
}

#[test]
fn the_default_model_answers_with_sense_and_ends_its_turn() {
    let server = Server::real(&[]);
    assert_eq!(
        server.health(),
        json!({ "status": "ok", "model": "smollm2-135m", "lanes": 0, "queued": 0 })
    );
    let reply = server.ask(&question(
        "What is the capital of France?",
        json!({ "seed": 1, "max_tokens": 64 }),
    ));
    assert!(text(&reply).contains("Paris"), "{reply:?}");
    assert_eq!(reply.json()["choices"][0]["finish_reason"], "stop");
}

#[test]
fn models_are_listed_and_found_by_name() {
    let server = Server::tiny(&[]);
    let list = server.get("/v1/models").json();
    assert_eq!(list["object"], "list");
    let model = &list["data"][0];
    assert_eq!(
        (&model["id"], &model["object"]),
        (&json!("tiny-llama3-q4_k"), &json!("model"))
    );
    assert!(model["created"].as_u64().unwrap() > 0);
    assert_eq!(&server.get("/v1/models/tiny-llama3-q4_k").json(), model);
    server.get("/v1/models/org/other").assert_error(
        404,
        Some("model_not_found"),
        &["org/other", "tiny-llama3-q4_k"],
    );
    let other = server.ask(&question("Hi", json!({ "model": "gpt-4o" })));
    other.assert_error(404, Some("model_not_found"), &["gpt-4o", "tiny-llama3-q4_k"]);
}

#[test]
fn what_cannot_be_answered_says_why_in_openais_shape() {
    let server = Server::tiny(&["--context", "64"]);
    server
        .post_text("{\"messages\": ", "")
        .assert_error(400, None, &["JSON"]);
    let image = json!({ "messages": [{ "role": "user", "content": [
        { "type": "text", "text": "What is it?" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==" } }
    ] }] });
    server
        .ask(&image)
        .assert_error(400, Some("unsupported_parameter"), &["images cannot be read yet"]);
    for (name, value) in [
        (
            "tools",
            json!([{ "type": "function", "function": { "name": "f" } }]),
        ),
        ("response_format", json!({ "type": "json_object" })),
        ("logprobs", json!(true)),
        ("n", json!(2)),
        ("frequency_penalty", json!(1)),
    ] {
        let reply = server.ask(&question("Hi", json!({ name: value })));
        reply.assert_error(400, Some("unsupported_parameter"), &[name]);
        assert_eq!(reply.json()["error"]["param"], name);
    }
    for stream in [false, true] {
        let long = server.ask(&question(&"word ".repeat(120), json!({ "stream": stream })));
        long.assert_error(
            400,
            Some("context_length_exceeded"),
            &["the prompt has", "window", "--context"],
        );
    }
    let huge = server.ask(&question(&"x".repeat(1_000_000), json!({})));
    huge.assert_error(
        400,
        Some("context_length_exceeded"),
        &["more than", "the window holds 64"],
    );
    server
        .get("/nothing")
        .assert_error(404, Some("unknown_url"), &["/v1/chat/completions"]);
    server
        .get("/v1/chat/completions")
        .assert_error(405, Some("method_not_allowed"), &["POST"]);
    server
        .send(server.head("DELETE", "/v1/models") + "\r\n")
        .assert_error(405, Some("method_not_allowed"), &["GET"]);
    assert_eq!(server.send("nonsense\r\n\r\n").status, 400);
}

#[test]
fn bodies_are_json_and_bounded() {
    let server = Server::tiny(&["--max-body", "10K"]);
    let head = server.head("POST", "/v1/chat/completions");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        let reply = server.send(format!(
            "{head}Content-Type: {kind}\r\nContent-Length: 2\r\n\r\n{{}}"
        ));
        reply.assert_error(415, None, &["application/json"]);
    }
    server
        .send(format!("{head}Content-Length: 2\r\n\r\n{{}}"))
        .assert_error(415, None, &["application/json"]);
    let large = question(&"x".repeat(20_000), json!({}));
    server
        .ask(&large)
        .assert_error(413, Some("body_too_large"), &["10000 bytes", "--max-body"]);
    // A body that does not say how long it is.
    let chunked = format!("{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    let piece = format!("{:x}\r\n{}\r\n", 8_000, " ".repeat(8_000));
    server
        .send(format!("{chunked}{piece}{piece}0\r\n\r\n"))
        .assert_error(413, Some("body_too_large"), &[]);
    let header = format!("X-Large: {}\r\n", "x".repeat(100_000));
    assert_eq!(server.send(format!("{head}{header}\r\n")).status, 431);
    assert_eq!(
        server.ask(&question("Hi", json!({ "max_tokens": 1 }))).status,
        200
    );
}

#[test]
fn a_key_is_needed_for_everything_but_the_health() {
    let home = folder();
    let mut command = reprise(home.path());
    command
        .env("REPRISE_API_KEY", "open-sesame")
        .args(["serve", "--port", "0", "-m"])
        .arg(tiny());
    let server = Server::spawn(command, home);
    assert_eq!(server.get("/health").status, 200);
    for path in ["/v1/models", "/v1/models/x", "/metrics", "/snapshot", "/nothing"] {
        let refused = server.get(path);
        refused.assert_error(401, Some("invalid_api_key"), &["Authorization: Bearer KEY"]);
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        let with =
            |key: &str| server.send(server.head("GET", path) + &format!("Authorization: {key}\r\n\r\n"));
        for wrong in [
            "Bearer open-sesam",
            "Bearer open-sesame-2",
            "Basic open-sesame",
            "Bearer ",
        ] {
            with(wrong).assert_error(401, Some("invalid_api_key"), &[]);
        }
        assert_ne!(with("Bearer open-sesame").status, 401);
    }
    let body = question("Hi", json!({ "max_tokens": 1 })).to_string();
    server
        .post_text(&body, "")
        .assert_error(401, Some("invalid_api_key"), &[]);
    assert_eq!(
        server
            .post_text(&body, "Authorization: Bearer open-sesame\r\n")
            .status,
        200
    );
}

#[test]
fn other_machines_are_let_in_only_with_a_key() {
    for host in ["0.0.0.0", "::", "192.168.1.5"] {
        let run = run_args(&["serve", "--host", host]);
        assert_fails(
            &run,
            2,
            &["other machines can reach", host, "REPRISE_API_KEY", "127.0.0.1"],
        );
    }
    assert_fails(
        &run_args(&["serve", "--host", "0.0.0.0", "--api-key", "a b"]),
        2,
        &["without spaces"],
    );
    assert_fails(
        &run_args(&["serve", "--host", "box.lan"]),
        2,
        &["an IP address is needed"],
    );
    assert_fails(
        &run_args(&["serve", "--allow-origin", "*"]),
        2,
        &["would let every web page in"],
    );
    let server = Server::tiny(&["--host", "0.0.0.0", "--api-key", "k"]);
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.get("/v1/models").status, 401);
}

#[test]
fn a_site_that_points_its_name_at_this_machine_gets_nothing() {
    let server = Server::tiny(&["--allow-host", "box.lan"]);
    let port = server.port;
    let body = question("Hi", json!({ "max_tokens": 1 })).to_string();
    let ask = |host: &str| {
        server.send(format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        "localhost:1".to_owned(),
        "127.0.0.1".to_owned(),
    ] {
        ask(&host).assert_error(403, Some("host_not_allowed"), &["--allow-host", "localhost"]);
    }
    ask("").assert_error(
        403,
        Some("host_not_allowed"),
        &["send a Host header", "localhost"],
    );
    for host in [
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        "box.lan".into(),
    ] {
        assert_eq!(ask(&host).status, 200, "{host}");
    }
    // The name in the request line counts as much as the header, and so does every header.
    let get = |line: &str, headers: &str| {
        server.send(format!(
            "GET {line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"
        ))
    };
    let ours = format!("Host: localhost:{port}\r\n");
    get("http://evil.example/health", &ours).assert_error(403, Some("host_not_allowed"), &[]);
    get("/health", &format!("{ours}Host: evil.example\r\n")).assert_error(403, Some("host_not_allowed"), &[]);
    assert_ne!(get("/health", "").status, 200, "a request that names nobody");
}

#[test]
fn no_web_page_may_ask_unless_the_person_allows_it() {
    let server = Server::tiny(&["--allow-origin", "http://localhost:3000"]);
    let body = question("Hi", json!({ "max_tokens": 1 })).to_string();
    for origin in [
        "https://evil.example",
        "null",
        "http://localhost:3001",
        "http://127.0.0.1:3000",
    ] {
        let headers = format!("Origin: {origin}\r\n");
        server.post_text(&body, &headers).assert_error(
            403,
            Some("origin_not_allowed"),
            &["web pages may not"],
        );
        for (method, path) in [
            ("GET", "/health"),
            ("GET", "/metrics"),
            ("OPTIONS", "/v1/chat/completions"),
        ] {
            let reply = server.send(server.head(method, path) + &headers + "\r\n");
            let advice = match origin {
                "null" => "use it from a program",
                _ => "--allow-origin",
            };
            reply.assert_error(403, Some("origin_not_allowed"), &[advice]);
            assert_eq!(reply.header("access-control-allow-origin"), None);
        }
    }
    // What a page loads as a picture or a script sends no origin, but the browser tells.
    let embedded = server.send(server.head("GET", "/snapshot") + "Sec-Fetch-Site: cross-site\r\n\r\n");
    embedded.assert_error(403, Some("origin_not_allowed"), &[]);
    assert_eq!(
        embedded.header("cross-origin-resource-policy"),
        Some("same-origin")
    );

    let allowed = "Origin: http://localhost:3000\r\n";
    let answer = server.post_text(&body, allowed);
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, Some("http://localhost:3000"))
    );
    let asked = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type, x-stainless-os\r\n";
    let preflight = server.send(server.head("OPTIONS", "/v1/chat/completions") + allowed + asked + "\r\n");
    assert_eq!(preflight.status, 204);
    assert_eq!(
        preflight.header("access-control-allow-headers"),
        Some("content-type, x-stainless-os")
    );
    assert_eq!(
        preflight.header("access-control-allow-methods"),
        Some("GET, POST")
    );
    assert_eq!(preflight.header("vary"), Some("Origin"));
}

#[test]
fn figures_are_there_for_prometheus_and_as_json() {
    let server = Server::tiny(&[]);
    assert_eq!(
        server
            .ask(&question("Hi", json!({ "max_tokens": 3, "user": "alice" })))
            .status,
        200
    );
    assert_eq!(
        server
            .ask(&question("Ho", json!({ "max_tokens": 3, "user": "a\u{1b}[2J" })))
            .status,
        200
    );
    assert_eq!(
        server.ask(&question(&"word ".repeat(9_000), json!({}))).status,
        400
    );
    let begin = Instant::now();
    let page = loop {
        let reply = server.get("/metrics");
        assert_eq!(
            reply.header("content-type"),
            Some("text/plain; version=0.0.4; charset=utf-8")
        );
        if reply.body.contains("\nreprise_requests_total 2\n") && reply.body.contains("refused_total 1\n") {
            break reply.body;
        }
        assert!(begin.elapsed() < PATIENCE, "{}", reply.body);
    };
    for line in [
        "# TYPE reprise_requests_total counter",
        "# TYPE reprise_kv_pages gauge",
        "# TYPE reprise_time_to_first_token_seconds histogram",
        "reprise_answer_tokens_total 6",
        "reprise_lanes{phase=\"decode\"} 0",
        "reprise_queued_requests 0",
        "reprise_time_to_first_token_seconds_count 2",
        "reprise_time_to_first_token_seconds_bucket{le=\"+Inf\"} 2",
        "reprise_decode_tokens_per_second_count 2",
    ] {
        assert!(page.lines().any(|found| found == line), "no {line} in {page}");
    }
    let snapshot = server.get("/snapshot").json();
    assert_eq!(snapshot["totals"]["answer_tokens"], 6);
    let mut owners: Vec<&str> = snapshot["pool"]["owners"]
        .as_array()
        .unwrap()
        .iter()
        .map(|owner| owner["name"].as_str().unwrap())
        .collect();
    owners.sort_unstable();
    assert_eq!(
        owners,
        ["server", "server: alice"],
        "a label that cannot be shown is left out"
    );
}

#[test]
fn memory_that_is_short_is_said_with_a_time_to_come_again() {
    let server = Server::tiny(&["--memory-limit", "1M"]);
    for stream in [false, true] {
        let refused = server.ask(&question("Hi", json!({ "stream": stream })));
        refused.assert_error(503, Some("memory_short"), &["memory is short", "limit is 1.0 MB"]);
        assert_eq!(refused.header("retry-after"), Some("5"));
    }
}

#[test]
fn a_client_that_goes_away_takes_its_request_along() {
    let server = Server::real(&[]);
    let long = |stream: bool| {
        question(
            STORY,
            json!({ "max_tokens": 4_000, "stream": stream, "temperature": 0 }),
        )
    };
    let stream = server.stream(&long(true));
    server.wait_for(1, 0);
    drop(stream);
    let begin = Instant::now();
    server.wait_for(0, 0);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(
        server.get("/snapshot").json()["totals"]["answer_tokens"]
            .as_u64()
            .unwrap()
            < 3_000
    );

    let whole = server.begin(&long(false));
    server.wait_for(1, 0);
    drop(whole);
    server.wait_for(0, 0);

    // While its prompt is read, which would take far longer.
    let reading = server.begin(&question(&"word ".repeat(7_000), json!({ "stream": true })));
    server.wait_for(1, 0);
    drop(reading);
    let begin = Instant::now();
    server.wait_for(0, 0);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[test]
fn four_are_answered_some_wait_and_the_rest_come_again() {
    let server = Server::real(&["--queue", "1"]);
    let long = question(
        STORY,
        json!({ "max_tokens": 1_500, "stream": true, "temperature": 0 }),
    );
    let mut lanes: Vec<_> = (0..4).map(|_| server.stream(&long)).collect();
    server.wait_for(4, 0);
    let waiting = server.begin(&question("Hi", json!({ "max_tokens": 2, "stream": true })));
    server.wait_for(4, 1);
    let refused = server.ask(&question("Hi", json!({})));
    refused.assert_error(503, Some("queue_full"), &["5 requests", "--queue"]);
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(
        server.get("/v1/models").status,
        200,
        "everything else is answered"
    );

    lanes.pop();
    let mut rest = String::new();
    { waiting }.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("data: [DONE]"), "{rest}");
    drop(lanes);
    server.wait_for(0, 0);
    assert_eq!(
        server.ask(&question("Hi", json!({ "max_tokens": 1 }))).status,
        200
    );
}

#[test]
fn answers_side_by_side_are_those_given_alone() {
    let server = Server::tiny(&[]);
    let ask = |index: usize, stream: bool| {
        let request = question(
            &format!("Question {index}: {}", "word ".repeat(40 * index)),
            json!({ "max_tokens": 40, "temperature": 0, "stream": stream }),
        );
        let reply = server.ask(&request);
        if stream { streamed(&reply) } else { text(&reply) }
    };
    let alone: Vec<String> = (0..6).map(|index| ask(index, false)).collect();
    let together: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|index| scope.spawn(move || ask(index, index % 2 == 0)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
}

#[test]
fn a_connection_serves_several_requests_and_a_slow_head_is_given_up() {
    let server = Server::tiny(&[]);
    let mut slow = server.connect();
    slow.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nHost: loc")
        .unwrap();
    let begin = Instant::now();

    let mut kept = server.connect();
    let request = format!("GET /health HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", server.port);
    for _ in 0..3 {
        kept.write_all(request.as_bytes()).unwrap();
        let mut got = Vec::new();
        while !got.ends_with(b"}") {
            let mut byte = [0];
            kept.read_exact(&mut byte).unwrap();
            got.push(byte[0]);
        }
        assert!(got.starts_with(b"HTTP/1.1 200"));
    }

    let mut rest = String::new();
    let _ = slow.read_to_string(&mut rest);
    assert!(!rest.contains("200 OK"), "{rest}");
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
}

#[cfg(unix)]
#[test]
fn told_to_end_it_stops_what_runs_and_leaves_without_a_failure() {
    for signal in ["INT", "TERM"] {
        let server = Server::real(&[]);
        let mut stream = server.stream(&question(STORY, json!({ "max_tokens": 4_000, "stream": true })));
        let whole = server.begin(&question(STORY, json!({ "max_tokens": 4_000 })));
        server.wait_for(2, 0);
        let begin = Instant::now();
        server.signal(signal);
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(
            rest.contains("the server is stopping") && !rest.contains("[DONE]"),
            "{rest}"
        );
        let mut refused = String::new();
        { whole }.read_to_string(&mut refused).unwrap();
        assert!(
            refused.starts_with("HTTP/1.1 503") && refused.contains("the server is stopping"),
            "{refused}"
        );
        let (status, _) = server.end();
        assert_eq!(status.code(), Some(0));
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    }
}

#[test]
fn a_port_that_is_taken_is_said_before_the_model_is_loaded() {
    let server = Server::tiny(&[]);
    let port = server.port.to_string();
    let home = folder();
    let run = run(reprise(home.path()).args(["serve", "--port", &port]), "");
    assert_fails(
        &run,
        1,
        &[
            "cannot listen at 127.0.0.1:",
            &port,
            "another program listens there",
            "--port",
        ],
    );
    assert_fails(&run_args(&["serve", "--port", "70000"]), 2, &["--port"]);
    assert_fails(
        &run_args(&["serve", "--port", "0", "-m", "no-such-model"]),
        1,
        &["no-such-model"],
    );
}
