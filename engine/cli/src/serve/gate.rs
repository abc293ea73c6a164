//! Who may use the server: programs of this machine, and whoever has the key. No web page may.
//!
//! A page of any site can make a browser send requests to this machine. Three things keep it out, before anything else
//! is looked at: the Host a request names must be this server's own (a site that points its name at 127.0.0.1 names
//! itself), an Origin must be one the person allowed, and a browser that says it fetches for a page of another site
//! (Sec-Fetch-Site) is believed.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use super::error::ApiError;
use super::state::Server;

/// The one path that needs no key: it tells only that the server is there.
pub const OPEN_PATH: &str = "/health";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const PRIVATE_NETWORK_ASKED: HeaderName = HeaderName::from_static("access-control-request-private-network");
const PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// Seconds a browser may remember that an allowed page may ask.
const PREFLIGHT_SECONDS: &str = "600";

/// Where a connection came in.
#[derive(Debug, Clone, Copy)]
pub struct Local {
    pub address: IpAddr,
    pub port: u16,
}

/// The rules.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    pub key: Option<String>,
    /// Names besides the loopback's, lower case, with or without a port.
    pub hosts: Vec<String>,
    /// Origins of pages, lower case.
    pub origins: Vec<String>,
}

/// The part of an allowed page's origin in an answer.
type Allowed = Option<HeaderValue>;

impl Gate {
    /// Whether the request names this server, and comes from no page that is not allowed.
    fn check_source(&self, request: &Request, local: Local) -> Result<Allowed, ApiError> {
        let headers = request.headers();
        let mut named: Vec<&[u8]> = headers
            .get_all(header::HOST)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        named.extend(
            request
                .uri()
                .authority()
                .map(|authority| authority.as_str().as_bytes()),
        );
        if named.is_empty() || !named.iter().all(|host| self.allows_host(host, local)) {
            let shown = named
                .iter()
                .find(|host| !self.allows_host(host, local))
                .map(|host| String::from_utf8_lossy(host).into_owned());
            let (shown, advice) = match shown.filter(|host| !host.is_empty()) {
                None => ("nothing at all".to_owned(), "send a Host header".to_owned()),
                Some(host) => (
                    format!("\"{host}\""),
                    format!("if that is a name of this machine, start the server with --allow-host {host}"),
                ),
            };
            return Err(forbidden(format!(
                "this server is asked as localhost:{port}, 127.0.0.1:{port} or [::1]:{port}, not as {shown}; {advice}",
                port = local.port
            ))
            .with_code("host_not_allowed"));
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        if let Some(origin) = origins.next() {
            let text = String::from_utf8_lossy(origin.as_bytes()).to_lowercase();
            if origins.next().is_some() || !self.origins.contains(&text) {
                let advice = match text.as_str() {
                    // A page without an origin of its own cannot be told from any other.
                    "null" => "use it from a program".to_owned(),
                    origin => format!("if this one shall, start the server with --allow-origin {origin}"),
                };
                return Err(forbidden(format!("web pages may not use this server; {advice}"))
                    .with_code("origin_not_allowed"));
            }
            return Ok(Some(origin.clone()));
        }
        match headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
            None | Some(b"none" | b"same-origin") => Ok(None),
            Some(_) => {
                let text = "web pages may not use this server (Sec-Fetch-Site); use it from a program";
                Err(forbidden(text).with_code("origin_not_allowed"))
            }
        }
    }

    fn allows_host(&self, host: &[u8], local: Local) -> bool {
        let Ok(host) = std::str::from_utf8(host).map(str::to_lowercase) else {
            return false;
        };
        let Ok(authority) = Authority::from_str(&host) else {
            return false;
        };
        if host.contains('@') {
            return false;
        }
        let name = authority.host();
        if self
            .hosts
            .iter()
            .any(|allowed| *allowed == host || allowed == name)
        {
            return true;
        }
        // A port that is there and cannot be read is no port of ours.
        let port = match authority.port() {
            Some(port) => Some(port.as_u16()),
            None if host.ends_with(':') => None,
            None => Some(80),
        };
        let literal = name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>();
        let is_ours = name == "localhost"
            || literal.is_ok_and(|ip| {
                let ip = ip.to_canonical();
                ip.is_loopback() || ip == local.address.to_canonical()
            });
        is_ours && port == Some(local.port)
    }

    fn check_key(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(key) = &self.key else { return Ok(()) };
        let refused =
            |text: &str| Err(ApiError::new(StatusCode::UNAUTHORIZED, text).with_code("invalid_api_key"));
        let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let Some(given) = given.and_then(bearer) else {
            return refused(
                "a key is needed: send Authorization: Bearer KEY, with the key the server was started with",
            );
        };
        if bool::from(given.ct_eq(key.as_bytes())) {
            Ok(())
        } else {
            refused(
                "the key is not the one the server was started with; look it up there (--api-key, REPRISE_API_KEY)",
            )
        }
    }
}

/// What follows `Bearer`.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, key) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| key.trim_ascii())
}

fn forbidden(text: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, text)
}

/// Lets a request through, or says why not.
pub async fn guard(
    State(server): State<Arc<Server>>,
    Extension(local): Extension<Local>,
    request: Request,
    next: Next,
) -> Response {
    let gate = &server.gate;
    let (mut response, allowed) = match gate.check_source(&request, local) {
        Ok(allowed) => (admit(gate, request, next, allowed.is_some()).await, allowed),
        Err(error) => (error.into_response(), None),
    };
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    if let Some(origin) = allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    response
}

async fn admit(gate: &Gate, request: Request, next: Next, is_page: bool) -> Response {
    if is_page && request.method() == Method::OPTIONS {
        return preflight(request.headers());
    }
    if request.uri().path() != OPEN_PATH
        && let Err(error) = gate.check_key(request.headers())
    {
        return error.into_response();
    }
    next.run(request).await
}

/// What a browser asks before it lets an allowed page ask.
fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let wanted = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        wanted.unwrap_or(HeaderValue::from_static("authorization, content-type")),
    );
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST"),
    );
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static(PREFLIGHT_SECONDS),
    );
    if asked.contains_key(PRIVATE_NETWORK_ASKED) {
        headers.insert(PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const LOCAL: Local = Local {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 11_711,
    };

    fn allows(gate: &Gate, local: Local, host: &str) -> bool {
        gate.allows_host(host.as_bytes(), local)
    }

    #[test]
    fn only_the_loopback_with_this_port_is_a_name_of_this_server() {
        let gate = Gate::default();
        for host in [
            "localhost:11711",
            "LOCALHOST:11711",
            "127.0.0.1:11711",
            "127.1.2.3:11711",
            "[::1]:11711",
        ] {
            assert!(allows(&gate, LOCAL, host), "{host}");
        }
        for host in [
            "",
            "localhost",
            "localhost:80",
            "localhost:",
            "localhost:99999",
            "evil.example:11711",
            "localhost.evil.example:11711",
            "127.0.0.1.evil.example:11711",
            "evil@localhost:11711",
            "192.168.1.5:11711",
            "0.0.0.0:11711",
            "[::1:11711",
            "localhost:11711, evil.example",
        ] {
            assert!(!allows(&gate, LOCAL, host), "{host}");
        }
        let plain = Local { port: 80, ..LOCAL };
        assert!(allows(&gate, plain, "localhost") && allows(&gate, plain, "[::1]"));
    }

    #[test]
    fn the_address_a_connection_came_to_is_one_too_and_so_are_allowed_names() {
        let gate = Gate {
            hosts: vec!["box.lan".into(), "other.lan:8080".into()],
            ..Gate::default()
        };
        let local = Local {
            address: IpAddr::V6(Ipv4Addr::new(192, 168, 1, 5).to_ipv6_mapped()),
            ..LOCAL
        };
        assert!(allows(&gate, local, "192.168.1.5:11711"));
        assert!(!allows(&gate, local, "192.168.1.6:11711"));
        for host in ["box.lan", "box.lan:11711", "BOX.LAN:443", "other.lan:8080"] {
            assert!(allows(&gate, local, host), "{host}");
        }
        assert!(!allows(&gate, local, "other.lan:11711") && !allows(&gate, local, "sub.box.lan"));
        let six = Local {
            address: IpAddr::V6(Ipv6Addr::LOCALHOST),
            ..LOCAL
        };
        assert!(allows(&gate, six, "127.0.0.1:11711"));
    }

    fn request(headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder()
            .uri("/v1/models")
            .header("host", "localhost:11711");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn pages_are_kept_out_unless_their_origin_is_allowed() {
        let gate = Gate {
            origins: vec!["http://localhost:3000".into()],
            ..Gate::default()
        };
        let check = |headers: &[(&str, &str)]| gate.check_source(&request(headers), LOCAL);
        assert_eq!(check(&[]), Ok(None));
        assert_eq!(
            check(&[("sec-fetch-site", "none")]),
            Ok(None),
            "a person types the address"
        );
        assert!(
            check(&[
                ("origin", "http://localhost:3000"),
                ("sec-fetch-site", "same-site")
            ])
            .unwrap()
            .is_some()
        );
        for headers in [
            &[("origin", "https://evil.example")][..],
            &[("origin", "null")],
            &[("origin", "http://localhost:3001")],
            &[("origin", "http://localhost:11711")],
            &[
                ("origin", "http://localhost:3000"),
                ("origin", "https://evil.example"),
            ],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("host", "evil.example")],
        ] {
            let refused = check(headers).unwrap_err();
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{headers:?}");
        }
        let absolute = Request::builder()
            .uri("http://evil.example/v1/models")
            .header("host", "localhost:11711")
            .body(Body::empty())
            .unwrap();
        assert!(gate.check_source(&absolute, LOCAL).is_err());
        let nameless = Request::builder().uri("/").body(Body::empty()).unwrap();
        assert!(gate.check_source(&nameless, LOCAL).is_err());
    }

    #[test]
    fn a_key_is_compared_whole() {
        let gate = Gate {
            key: Some("sesame".into()),
            ..Gate::default()
        };
        let check = |value: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.extend(value.map(|value| (header::AUTHORIZATION, HeaderValue::from_static(value))));
            gate.check_key(&headers).is_ok()
        };
        assert!(check(Some("Bearer sesame")) && check(Some("bearer sesame")));
        for wrong in [
            "Bearer sesam",
            "Bearer sesame2",
            "Bearer ",
            "Bearer",
            "sesame",
            "Basic sesame",
            "",
        ] {
            assert!(!check(Some(wrong)), "{wrong}");
        }
        assert!(!check(None));
        assert!(Gate::default().check_key(&HeaderMap::new()).is_ok());
    }
}
