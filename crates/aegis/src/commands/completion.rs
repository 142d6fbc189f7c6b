//! `aegis completion`: what a shell needs to complete the command line.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::raw;

/// Below `aegis completion --help`.
pub(crate) const EXAMPLES: &str = "Examples:\n  \
    bash        source <(aegis completion bash)\n  \
    zsh         aegis completion zsh > \"${fpath[1]}/_aegis\"\n  \
    fish        aegis completion fish > ~/.config/fish/completions/aegis.fish\n  \
    PowerShell  aegis completion powershell | Out-String | Invoke-Expression";

#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// Of which shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints it.
#[expect(clippy::unnecessary_wraps, reason = "every command has the same shape")]
pub(crate) fn run(arguments: &CompletionArguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "aegis",
        &mut script,
    );
    raw(&script);
    Ok(Exit::Done)
}
