use super::*;

fn args(words: &str) -> Result<AgentArgs, String> {
    let words = ["prober"].into_iter().chain(words.split_whitespace());
    AgentArgs::try_parse_from(words).map_err(|error| error.to_string())
}

const DEFAULTS: &str = r#"AgentArgs {
    config_file: "x",
    kubeconfig: None,
    kube_api_qps: 5.0,
    kube_api_burst: 10,
    concurrent_reconciles: 1,
    metrics_bind_addr: ":9643",
    metrics_per_shoot: false,
    health_bind_addr: ":9644",
    pprof_bind_addr: ":8081",
    dry_run: false,
    leader_election: LeaderElection {
        enabled: false,
        namespace: "garden",
        lease_duration: 15s,
        renew_deadline: 10s,
        retry_period: 2s,
    },
    zap: ZapOptions {
        level: LevelFilter::DEBUG,
        encoder: None,
        time_encoding: None,
        stacktrace_level: None,
        devel: None,
    },
    ignored: [],
}"#;

#[test]
fn without_flags_the_defaults_of_the_reference_hold() {
    let read = args("--config-file=x").expect("no more is required");
    assert_eq!(format!("{read:#?}"), DEFAULTS);
    // As a chart renders it that has no such value.
    assert!(args("--config-file=x --kubeconfig=").is_ok());
}

#[test]
fn the_names_of_the_published_help_are_aliases() {
    let words =
        "--config-file=x --metrics-bind-address=:1 --health-bind-address :2 --pprof-bind-addr=0";
    let args = args(words).expect("known");
    let addresses = [
        args.metrics_bind_addr,
        args.health_bind_addr,
        args.pprof_bind_addr,
    ];
    assert_eq!(addresses, [":1", ":2", "0"]);
}

#[test]
fn values_are_taken_as_by_go() {
    for (words, file, burst) in [
        (
            "--config-file=a=b --kube-api-burst=3 -- --kube-api-burst=4",
            "a=b",
            3,
        ),
        (
            "--config-file=x --kube-api-burst=3 - --kube-api-burst=4",
            "x",
            3,
        ),
        (
            "--config-file=x --kube-api-burst=3 word --kube-api-burst=4",
            "x",
            3,
        ),
        (
            "--config-file=x --config-file y --kube-api-burst=0 --kube-api-qps=0",
            "y",
            10,
        ),
        (
            "--config-file=x --leader-elect-retry-period=20s --leader-elect-renew-deadline=20s",
            "x",
            10,
        ),
        (
            "--config-file=x --enable-leader-election --leader-elect-lease-duration=10s",
            "x",
            10,
        ),
    ] {
        let args = args(words).expect(words).validate().expect(words);
        let taken = (args.config_file, args.kube_api_burst, args.kube_api_qps);
        assert_eq!(taken, (file.into(), burst, 5.0), "{words}");
    }
}

#[test]
fn flags_that_make_no_sense_are_named_by_the_check() {
    for (words, named) in [
        (
            "--leader-elect-retry-period=-2s",
            "error: invalid value '-2s' for '--leader-elect-retry-period <duration>': expected a duration like \"30s\" or \"1h15m\", not negative",
        ),
        (
            "--config-file=",
            "error: a value is required for '--config-file <path>'",
        ),
        ("-config-file=x", "error: unexpected argument '-c' found"),
        (
            "--kube-api-burst=0x10",
            "error: invalid value '0x10' for '--kube-api-burst <int>'",
        ),
        ("--config-file=x --kube-api-qps=-1", "--kube-api-qps=-1"),
        ("--config-file=x --kube-api-qps=NaN", "--kube-api-qps=NaN"),
        (
            "--config-file=x --enable-leader-election --leader-elect-lease-duration=9s",
            "--leader-elect-renew-deadline=10s is longer than --leader-elect-lease-duration=9s",
        ),
        (
            "--config-file=x --enable-leader-election --leader-elect-retry-period=10s",
            "--leader-elect-retry-period=10s is not shorter than --leader-elect-renew-deadline=10s",
        ),
        (
            "--config-file=x --enable-leader-election --leader-elect-retry-period=0",
            "--leader-elect-retry-period=0ns",
        ),
    ] {
        let checked =
            args(words).and_then(|args| args.validate().map_err(|error| error.to_string()));
        let message = checked.expect_err(words);
        assert!(message.starts_with(named), "{message}");
    }
}
