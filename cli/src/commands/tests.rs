use clap::CommandFactory;
use common::logging::LevelFilter;

use super::*;

fn parse(words: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(
        ["dependency-watchdog"]
            .into_iter()
            .chain(words.split_whitespace()),
    )
}

/// The flags of an agent by its command line.
fn args(words: &str) -> AgentArgs {
    match parse(words) {
        Ok(Cli::Prober(args) | Cli::Weeder(args)) => args,
        other => unreachable!("{words} are no flags: {other:?}"),
    }
}

#[test]
fn the_options_do_not_contradict_each_other() {
    Cli::command().debug_assert();
}

#[test]
fn gardeners_own_command_lines_are_read() {
    let config = "/etc/dependency-watchdog/config/dep-config.yaml";
    let both = format!("--config-file={config} --enable-leader-election=true");
    let more = "--kube-api-qps=20.0 --kube-api-burst=100 --zap-log-level=INFO";
    let prober = args(&format!("prober {both} {more}"));
    assert_eq!((prober.kube_api_qps, prober.kube_api_burst), (20.0, 100));
    assert_eq!(prober.zap.level, LevelFilter::INFO);
    for args in [prober, args(&format!("weeder {both}"))] {
        assert_eq!(args.config_file, PathBuf::from(config));
        assert!(args.leader_election.enabled && args.validate().is_ok());
    }
}

#[test]
fn switches_are_true_alone_and_the_last_repetition_wins() {
    for words in [
        "prober --config-file=x --dry-run --kube-api-burst=16",
        "prober --config-file y --config-file x --dry-run=T --kube-api-burst 16",
        "prober --dry-run=0 --config-file x --kube-api-burst=3 --dry-run=1 --kube-api-burst 16 word --kube-api-burst=4",
    ] {
        let args = args(words);
        let read = (args.config_file, args.dry_run, args.kube_api_burst);
        assert_eq!(read, (PathBuf::from("x"), true, 16), "{words:?}");
    }
    let status = parse("status -ojson");
    assert!(matches!(status, Ok(Cli::Status(args)) if args.output == Format::Json));
}
