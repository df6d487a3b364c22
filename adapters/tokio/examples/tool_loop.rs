//! A model that calls tools, against a scripted server in this very process: `cargo run --package steadfast-tokio --example tool_loop`
//!
//! Two tools run side by side, one of them too slow for the scope around the loop. The model is told so,
//! and answers all the same. For a real provider, change the URL and give the request a key.

use std::error::Error;
use std::time::Duration;

use serde_json::json;
use steadfast_mock::Mock;
use steadfast_scenario::Script;
use steadfast_tokio::{
    Client, Conversation, Format, Overrides, Prices, Request, RequestConfig, ToolError, ToolEvent, ToolLoop,
    ToolReport, tool,
};

const SCRIPT: &str = include_str!("tool_loop.toml");

async fn run() -> Result<(ToolReport, Conversation), Box<dyn Error>> {
    let mock = Mock::start(&Script::parse(SCRIPT)?, None)?;
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let weather = tool("weather", "The sky over a city", city, |arguments| async move {
        let city = arguments["city"].as_str().ok_or_else(|| ToolError::new("`city` is missing"))?;
        Ok(json!({"city": city, "sky": "clear"}))
    });
    let tides = tool("tides", "The next high tide", json!({"type": "object"}), |_| std::future::pending());

    let endpoint = Request::post(&format!("{}/v1/chat/completions", mock.base_url()));
    let mut conversation = Conversation::new(Format::OpenAiChat, endpoint, "gpt-5-nano")
        .system("Be brief.")
        .prices(Prices::new("0.05".parse()?, "0.40".parse()?));
    let tools = ToolLoop::new([]).tool(weather).tool(tides).max_turns(4).deadline(Duration::from_secs(60));
    let client = Client::new();
    let report = RequestConfig::scope(&Overrides::new().tool_timeout(0.2), async {
        let mut run = tools.run(&client, &mut conversation, "How is Oslo today?")?;
        while let Some(event) = run.next().await {
            match event {
                ToolEvent::Piece { piece, .. } => print!("{}", piece.text()),
                ToolEvent::Called { call, .. } => print!("\n  {}({}) …", call.name, call.arguments),
                ToolEvent::Returned { result, .. } => {
                    print!("\n  {} gave {:?}", result.call.name, result.value)
                }
                _ => {}
            }
        }
        Ok::<_, Box<dyn Error>>(run.report().await)
    })?
    .await?;
    Ok((report, conversation))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (report, conversation) = run().await?;
    println!(
        "\n{:?} after {} calls; {} tokens cost ${}",
        report.end,
        report.cost.calls,
        report.cost.tokens.total(),
        report.cost.amount
    );
    println!("{} messages are kept", conversation.messages().len());
    Ok(())
}

#[tokio::test]
async fn the_loop_ends_with_an_answer() {
    let (report, conversation) = run().await.expect("it runs");
    assert!(report.text().contains("Clear skies"), "{report:?}");
    assert_eq!((report.tools.len(), conversation.messages().len()), (2, 6));
    assert_eq!(report.cost.amount.to_string(), "0.000028");
}
