use std::os::unix::ffi::OsStringExt;

use super::*;
use go_compat::zap::{Level, StackLevel, TimeEncoding};
use proptest::prelude::*;

mod zap;

fn command(words: &[&str]) -> Result<CommandLine, String> {
    parse(words.iter().map(std::ffi::OsString::from)).map_err(|error| error.to_string())
}

/// The flags of `prober` followed by these words.
fn args(words: &[&str]) -> Result<AgentArgs, String> {
    let words: Vec<_> = ["prober"].iter().chain(words).copied().collect();
    match command(&words)? {
        CommandLine::Run(Agent::Prober, args) => Ok(args),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn no_words_or_a_plain_cry_for_help_show_the_usage() {
    for words in [&[][..], &["-h"], &["--help"], &["--help", "prober"]] {
        assert_eq!(command(words), Ok(CommandLine::Usage), "{words:?}");
    }
    let usage = CommandLine::Usage.text().expect("a text");
    assert!(
        usage.contains("prober") && usage.contains("weeder"),
        "{usage}"
    );
}

#[test]
fn help_needs_a_command_that_exists() {
    assert_eq!(
        command(&["help", "weeder"]),
        Ok(CommandLine::Help(Agent::Weeder))
    );
    assert_eq!(
        command(&["help", "prober"]),
        Ok(CommandLine::Help(Agent::Prober))
    );
    for words in [&["help"][..], &["help", "nope"]] {
        let message = command(words).expect_err("no help");
        assert!(
            message.contains("prober") && message.contains("weeder"),
            "{message}"
        );
    }
}

#[test]
fn an_unknown_command_is_answered_with_those_that_exist() {
    let message = command(&["probber", "--config-file=x"]).expect_err("unknown");
    assert!(
        message.starts_with(
            "there is no command \"probber\". The commands are prober, weeder, status"
        ),
        "{message}"
    );
    assert!(command(&["--version"]).is_err());
}

#[test]
fn a_command_with_help_among_its_flags_shows_its_help() {
    for word in ["-h", "--h", "-help", "--help", "--help=yes"] {
        assert_eq!(
            command(&["prober", "--kube-api-burst=3", word]),
            Ok(CommandLine::Help(Agent::Prober)),
            "{word}"
        );
    }
    let help = CommandLine::Help(Agent::Prober).text().expect("a text");
    for flag in super::command().get_arguments() {
        let name = flag.get_long().expect("a name");
        assert!(help.contains(&format!("--{name}")), "{name}");
    }
    for default in [
        "(default :9643)",
        "(default 5.0)",
        "(default 15s)",
        "(default garden)",
        "(default debug)",
        "(default json)",
    ] {
        assert!(help.contains(default), "{default}: {help}");
    }
}

#[test]
fn without_flags_the_defaults_of_the_reference_hold() {
    let expected = AgentArgs {
        config_file: PathBuf::new(),
        kubeconfig: PathBuf::new(),
        kube_api_qps: 5.0,
        kube_api_burst: 10,
        concurrent_reconciles: 1,
        metrics_bind_addr: ":9643".into(),
        metrics_per_shoot: false,
        health_bind_addr: ":9644".into(),
        pprof_bind_addr: ":8081".into(),
        dry_run: false,
        leader_election: LeaderElection {
            enabled: false,
            namespace: "garden".into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        },
        zap: ZapOptions {
            level: Level::DEBUG,
            encoder: None,
            time_encoding: TimeEncoding::Rfc3339,
            stacktrace_level: StackLevel::Error,
            devel: false,
        },
    };
    assert_eq!(args(&[]), Ok(expected), "no flags are fine for the syntax");
}

#[test]
fn gardeners_own_arguments_are_read() {
    let args = args(&[
        "--config-file=/etc/dependency-watchdog/config/dep-config.yaml",
        "--kube-api-qps=20.0",
        "--kube-api-burst=100",
        "--zap-log-level=INFO",
        "--enable-leader-election=true",
    ])
    .and_then(|args| args.validate().map_err(|error| error.to_string()))
    .expect("valid");
    assert_eq!(
        args.config_file,
        PathBuf::from("/etc/dependency-watchdog/config/dep-config.yaml")
    );
    assert_eq!((args.kube_api_qps, args.kube_api_burst), (20.0, 100));
    assert_eq!(args.zap.level, Level::Info);
    assert!(args.leader_election.enabled);
}

#[test]
fn one_dash_or_two_and_an_equals_sign_or_a_space_are_the_same() {
    for words in [
        &["-config-file=x"][..],
        &["--config-file=x"],
        &["-config-file", "x"],
        &["--config-file", "x"],
    ] {
        assert_eq!(
            args(words).map(|args| args.config_file),
            Ok(PathBuf::from("x")),
            "{words:?}"
        );
    }
    assert_eq!(
        args(&["--config-file=a=b"]).map(|args| args.config_file),
        Ok(PathBuf::from("a=b"))
    );
    assert_eq!(
        args(&["--config-file", "--kubeconfig"]).map(|args| args.config_file),
        Ok(PathBuf::from("--kubeconfig"))
    );
    assert_eq!(
        args(&["--config-file=x", "--config-file="]).map(|args| args.config_file),
        Ok(PathBuf::new())
    );
}

#[test]
fn a_switch_takes_its_value_only_after_an_equals_sign() {
    let enabled = |words: &[&str]| args(words).map(|args| args.leader_election.enabled);
    assert_eq!(enabled(&["--enable-leader-election"]), Ok(true));
    for word in ["1", "t", "T", "true", "TRUE", "True"] {
        assert_eq!(
            enabled(&[&format!("--enable-leader-election={word}")]),
            Ok(true),
            "{word}"
        );
    }
    for word in ["0", "f", "F", "false", "FALSE", "False"] {
        assert_eq!(
            enabled(&[
                "--enable-leader-election",
                &format!("--enable-leader-election={word}")
            ]),
            Ok(false),
            "{word}"
        );
    }
    // The word after a bare switch ends the flags: what follows is ignored, the unknown flag too.
    let words = [
        "--enable-leader-election",
        "false",
        "--kube-api-burst=7",
        "--nonsense",
    ];
    let args = args(&words).expect("ignored");
    assert_eq!(
        (args.leader_election.enabled, args.kube_api_burst),
        (true, 10)
    );
    assert!(enabled(&["--enable-leader-election=yes"]).is_err());
    assert!(enabled(&["--enable-leader-election="]).is_err());
}

#[test]
fn the_flags_end_at_two_dashes_or_at_a_lone_one() {
    for end in ["--", "-", "word", ""] {
        let burst = args(&["--kube-api-burst=3", end, "--kube-api-burst=4"])
            .map(|args| args.kube_api_burst);
        assert_eq!(burst, Ok(3), "{end:?}");
    }
}

#[test]
fn the_last_repetition_wins() {
    assert_eq!(
        args(&["--kube-api-qps=1", "-kube-api-qps", "2.5"]).map(|args| args.kube_api_qps),
        Ok(2.5)
    );
}

#[test]
fn what_is_wrong_with_a_flag_is_said_in_one_line_that_names_it() {
    for (words, expected) in [
        (&["--no-such-flag"][..], "prober has no flag --no-such-flag"),
        (&["-no-such-flag=1"], "prober has no flag --no-such-flag"),
        (&["---config-file=x"], "---config-file=x: this is no flag"),
        (&["--=x"], "--=x: this is no flag"),
        (&["--config-file"], "--config-file needs a value: a path"),
        (
            &["--kube-api-burst=ten"],
            "--kube-api-burst=\"ten\": expected a whole number that fits in 64 bits",
        ),
        (
            &["--kube-api-qps=fast"],
            "--kube-api-qps=\"fast\": expected a number",
        ),
        (
            &["--kube-api-qps=1e999"],
            "--kube-api-qps=\"1e999\": expected a number",
        ),
        (
            &["--kube-api-qps=-nan"],
            "--kube-api-qps=\"-nan\": expected a number",
        ),
        (
            &["--kube-api-qps=a\nb"],
            "--kube-api-qps=\"a\\nb\": expected a number",
        ),
        (
            &["--leader-elect-retry-period=2"],
            "--leader-elect-retry-period=\"2\": expected a duration like \"30s\"",
        ),
        (
            &["--leader-elect-retry-period=-2s"],
            "--leader-elect-retry-period=\"-2s\": expected a duration like \"30s\" or \"1h15m\", not negative",
        ),
    ] {
        let message = args(words).expect_err("wrong");
        assert!(message.starts_with(expected), "{message}");
        assert_eq!(message.lines().count(), 1);
    }
    let not_text = std::ffi::OsString::from_vec(vec![b'-', 0xff]);
    assert!(parse(["prober".into(), not_text]).is_err());
}

#[test]
fn the_names_of_the_published_help_are_aliases() {
    let args = args(&[
        "--metrics-bind-address=:1",
        "--health-bind-address",
        ":2",
        "--pprof-bind-addr=0",
    ])
    .expect("known");
    assert_eq!(
        (
            args.metrics_bind_addr.as_str(),
            args.health_bind_addr.as_str()
        ),
        (":1", ":2")
    );
    assert_eq!(args.pprof_bind_addr, "0");
}

#[test]
fn flags_that_make_no_sense_are_named_by_the_check() {
    let check = |words: &[&str]| {
        let words: Vec<_> = ["--config-file=x", "--enable-leader-election"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        args(&words)
            .expect("the syntax is fine")
            .validate()
            .map_err(|error| error.to_string())
    };
    assert!(check(&[]).is_ok());
    let no_file = args(&[])
        .expect("no flag")
        .validate()
        .expect_err("no file")
        .to_string();
    assert!(no_file.contains("--config-file"), "{no_file}");
    for (words, named) in [
        (&["--kube-api-qps=-1"][..], &["--kube-api-qps"][..]),
        (&["--kube-api-qps=NaN"], &["--kube-api-qps"]),
        (&["--kube-api-qps=inf"], &["--kube-api-qps"]),
        (&["--kube-api-burst=-1"], &["--kube-api-burst"]),
        (
            &["--leader-elect-lease-duration=9s"],
            &[
                "--leader-elect-renew-deadline=10s",
                "--leader-elect-lease-duration=9s",
            ],
        ),
        (
            &["--leader-elect-retry-period=10s"],
            &[
                "--leader-elect-retry-period=10s",
                "--leader-elect-renew-deadline=10s",
            ],
        ),
        (
            &["--leader-elect-retry-period=0"],
            &["--leader-elect-retry-period=0s"],
        ),
    ] {
        let message = check(words).expect_err("no sense");
        assert!(named.iter().all(|flag| message.contains(flag)), "{message}");
    }
    let zeros = check(&["--kube-api-qps=0", "--kube-api-burst=0"]).expect("0 means the default");
    assert_eq!((zeros.kube_api_qps, zeros.kube_api_burst), (5.0, 10));
    assert!(
        check(&["--leader-elect-lease-duration=10s"]).is_ok(),
        "equal is allowed"
    );
}

#[test]
fn the_times_of_an_election_are_checked_only_if_there_is_one() {
    for words in [
        &["--leader-elect-lease-duration=9s"],
        &["--leader-elect-retry-period=10s"],
        &["--leader-elect-retry-period=0"],
    ] {
        let valid = |switch: &str| {
            args(&[&["--config-file=x", switch], &words[..]].concat())
                .expect("known")
                .validate()
                .is_ok()
        };
        assert!(
            valid("--enable-leader-election=false") && !valid("--enable-leader-election"),
            "{words:?}"
        );
    }
}

proptest! {
    #[test]
    fn no_words_make_it_panic(words in prop::collection::vec("[-=a-z0-9._é]{0,30}", 0..6)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let _ = args(&words);
    }
}
