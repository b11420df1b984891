use std::iter;

use proptest::prelude::*;

use super::*;

fn args(words: &[&str]) -> Result<AgentArgs, String> {
    let program = iter::once(&"prober");
    AgentArgs::try_parse_from(program.chain(words)).map_err(|error| error.to_string())
}

#[test]
fn without_flags_the_defaults_of_the_reference_hold() {
    let args = args(&[]).expect("no flags are fine for the syntax");
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
        zap: args.zap.clone(),
        ignored: Vec::new(),
    };
    assert_eq!(args, expected);
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
fn a_value_may_be_empty_or_hold_an_equals_sign() {
    let file = |words: &[&str]| args(words).map(|args| args.config_file);
    assert_eq!(file(&["--config-file=a=b"]), Ok("a=b".into()));
    assert_eq!(file(&["--config-file=x", "--config-file="]), Ok("".into()));
}

#[test]
fn the_last_repetition_wins() {
    assert_eq!(
        args(&["--kube-api-qps=1", "--kube-api-qps", "2.5"]).map(|args| args.kube_api_qps),
        Ok(2.5)
    );
}

#[test]
fn what_is_wrong_with_a_flag_names_it_first() {
    for (words, expected) in [
        (
            &["--no-such-flag=1"][..],
            "unexpected argument '--no-such-flag' found",
        ),
        (
            &["---config-file=x"],
            "unexpected argument '---config-file' found",
        ),
        (
            &["--config-file"],
            "a value is required for '--config-file <path>'",
        ),
        (
            &["--kube-api-burst=ten"],
            "invalid value 'ten' for '--kube-api-burst <int>': expected a whole number",
        ),
        (
            &["--kube-api-qps=fast"],
            "invalid value 'fast' for '--kube-api-qps <number>'",
        ),
        (
            &["--leader-elect-retry-period=2"],
            "invalid value '2' for '--leader-elect-retry-period <duration>': expected a duration like \"30s\"",
        ),
        (
            &["--leader-elect-retry-period=-2s"],
            "invalid value '-2s' for '--leader-elect-retry-period <duration>': expected a duration like \"30s\" or \"1h15m\", not negative",
        ),
    ] {
        let message = args(words).expect_err("wrong");
        assert!(
            message.starts_with(&format!("error: {expected}")),
            "{message}"
        );
    }
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
