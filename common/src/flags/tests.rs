use proptest::prelude::*;

use super::*;

fn args(words: &[&str]) -> Result<AgentArgs, String> {
    let words = ["prober"].iter().chain(words);
    AgentArgs::try_parse_from(words).map_err(|error| error.to_string())
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
fn values_are_taken_as_by_go() {
    for end in ["--", "-", "word", ""] {
        let args = args(&["--kube-api-burst=3", end, "--kube-api-burst=4"]);
        assert_eq!(args.map(|args| args.kube_api_burst), Ok(3), "{end:?}");
    }
    for (words, file) in [
        (&["--config-file=a=b"][..], "a=b"),
        (&["--config-file=x", "--config-file="], ""),
        (&["--config-file=x", "--config-file", "y"], "y"),
    ] {
        assert_eq!(args(words).map(|args| args.config_file), Ok(file.into()));
    }
}

#[test]
fn what_is_wrong_with_a_flag_names_it_first() {
    for (word, expected) in [
        (
            "--no-such-flag=1",
            "unexpected argument '--no-such-flag' found",
        ),
        (
            "--config-file",
            "a value is required for '--config-file <path>'",
        ),
        (
            "--kube-api-burst=ten",
            "invalid value 'ten' for '--kube-api-burst <int>': expected a whole number",
        ),
        (
            "--leader-elect-retry-period=-2s",
            "invalid value '-2s' for '--leader-elect-retry-period <duration>': expected a duration like \"30s\" or \"1h15m\", not negative",
        ),
    ] {
        let message = args(&[word]).expect_err("wrong");
        assert!(
            message.starts_with(&format!("error: {expected}")),
            "{message}"
        );
    }
}

#[test]
fn the_names_of_the_published_help_are_aliases() {
    let words = [
        "--metrics-bind-address=:1",
        "--health-bind-address",
        ":2",
        "--pprof-bind-addr=0",
    ];
    let args = args(&words).expect("known");
    let addresses = [
        args.metrics_bind_addr,
        args.health_bind_addr,
        args.pprof_bind_addr,
    ];
    assert_eq!(addresses, [":1", ":2", "0"]);
}

#[test]
fn flags_that_make_no_sense_are_named_by_the_check() {
    let check = |words: &[&str]| {
        let args = args(&[&["--config-file=x"], words].concat()).expect("the syntax is fine");
        args.validate().map_err(|error| error.to_string())
    };
    let elects = "--enable-leader-election";
    for (words, named) in [
        (&["--config-file="][..], "--config-file is missing"),
        (&["--kube-api-qps=-1"], "--kube-api-qps"),
        (&["--kube-api-qps=NaN"], "--kube-api-qps"),
        (&["--kube-api-qps=inf"], "--kube-api-qps"),
        (&["--kube-api-burst=-1"], "--kube-api-burst"),
        (
            &[elects, "--leader-elect-lease-duration=9s"],
            "--leader-elect-renew-deadline=10s is longer than --leader-elect-lease-duration=9s",
        ),
        (
            &[elects, "--leader-elect-retry-period=10s"],
            "--leader-elect-retry-period=10s is not shorter than --leader-elect-renew-deadline=10s",
        ),
        (
            &[elects, "--leader-elect-retry-period=0"],
            "--leader-elect-retry-period=0s",
        ),
    ] {
        let message = check(words).expect_err("no sense");
        assert!(message.starts_with(named), "{message}");
        if words[0] == elects {
            assert!(check(&words[1..]).is_ok(), "without an election");
        }
    }
    let zeros = check(&["--kube-api-qps=0", "--kube-api-burst=0"]).expect("the default");
    assert_eq!((zeros.kube_api_qps, zeros.kube_api_burst), (5.0, 10));
    assert!(
        check(&[elects, "--leader-elect-lease-duration=10s"]).is_ok(),
        "equal is allowed"
    );
}

proptest! {
    #[test]
    fn no_words_make_it_panic(words in prop::collection::vec("[-=a-z0-9._é]{0,30}", 0..6)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let _ = args(&words);
    }
}
