//! A small server of tools for tests: one that works, and several that misbehave.

#![allow(missing_docs)] // what the macros make

use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Two {
    /// The first number
    a: i64,
    /// The second number
    b: i64,
}

#[derive(Debug, Clone)]
struct Tools;

#[tool_router]
impl Tools {
    #[tool(description = "Adds two numbers")]
    fn add(&self, Parameters(Two { a, b }): Parameters<Two>) -> String {
        a.saturating_add(b).to_string()
    }

    #[tool(description = "Says a variable of its environment")]
    fn variable(&self) -> String {
        format!(
            "{:?} {:?}",
            std::env::var("GIVEN").ok(),
            std::env::var("SECRET").ok()
        )
    }

    #[tool(description = "Fails")]
    fn fail(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text("no such thing")])
    }

    #[tool(description = "Never answers")]
    async fn sleep(&self) -> String {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        String::new()
    }

    #[tool(description = "Says too much")]
    fn flood(&self) -> String {
        "é".repeat(1_000_000)
    }

    #[tool(description = "Dies")]
    fn crash(&self) -> String {
        eprintln!("out of ideas");
        std::process::exit(7)
    }
}

#[tool_handler]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("silent") => std::thread::sleep(Duration::from_secs(3_600)),
        Some("broken") => {
            eprintln!("no licence found");
            std::process::exit(3);
        }
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        Tools.serve(rmcp::transport::stdio()).await?.waiting().await?;
        Ok(())
    })
}
