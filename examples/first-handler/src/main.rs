//! The worker: claims orders of the queue `cards`, and drains on SIGTERM.

use std::process::ExitCode;

use aegis_worker::{CallError, Config, OperationCall, Store, Worker};
use first_handler::{Bank, Charge, ChargeCard};

/// Stands for your bank's client.
struct PaperBank;

impl Bank for PaperBank {
    async fn charge(&self, call: &OperationCall, charge: &Charge) -> Result<String, CallError> {
        eprintln!("charges {} cents under the key {}", charge.cents, call.id);
        Ok(format!("receipt for {}", charge.order))
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let url = std::env::var("AEGIS_DATABASE_URL")?;
    let store = Store::connect(Config::from_url(&url)?).await?;
    let worker = Worker::builder(store)
        .name("cards")
        .queue("cards")
        .handler(ChargeCard { bank: PaperBank })
        .build()?;
    eprintln!("waits for orders");
    let exit = worker.run_until_signal().await?;
    Ok(ExitCode::from(exit.code()))
}
