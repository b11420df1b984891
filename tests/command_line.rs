//! The command line of the real binary, as far as no cluster is needed.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_dependency-watchdog");

/// Runs a shell script in this repository, in which `$WATCHDOG` is the binary and `$WORK` an empty
/// folder. Nothing of the caller's own clusters may be found. What takes a minute is ended.
fn sh(script: &str) -> Output {
    let work = tempfile::tempdir().expect("a folder");
    let mut shell = Command::new("timeout");
    shell.args(["60", "sh", "-c", script]).stdin(Stdio::null());
    let path = std::env::var("PATH").unwrap_or_default();
    shell.env_clear().env("PATH", path);
    shell.env("WATCHDOG", BINARY).env("WORK", work.path());
    let output = shell.current_dir(env!("CARGO_MANIFEST_DIR")).output();
    output.expect("a shell")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// Exit code, arguments, and what is written, among others unless it ends with a line: answers and
/// help to stdout, all else to stderr.
const LINES: &str = "\
0 | check-config config/prober.yaml | config/prober.yaml: valid as the prober's config\\n
0 | check-config config/weeder.yaml | config/weeder.yaml: valid as the weeder's config\\n
0 | completions bash | enable-leader-election
0 | completions zsh | check-config
0 | completions fish | check-config
1 | explain a --address 127.0.0.1:1 | error: no prober answers (127.0.0.1:1: Connection refused
2 |  | check-config
0 | help explain | The shoot's namespace on the seed
0 | help weeder | --config-file
0 | --version | dependency-watchdog VERSION\\n
0 | help | prober
2 | help nope | 'nope'
2 | probber | 'probber'
2 | explain | error:
2 | restore --yes | error:
2 | restore a --all | error:
2 | restore --all --force | error:
2 | prober --no-such-flag | error: unexpected argument '--no-such-flag' found
2 | prober -config-file=config/prober.yaml | error: unexpected argument '-c' found
2 | prober --kube-api-burst=0x10 | '0x10'
2 | prober | --config-file <path>
1 | prober --config-file=/no/such | /no/such: No such file
1 | prober --config-file=/no/such --zap-encoder=CONSOLE --zap-devel=true | \"ignored\":\"--zap-encoder --zap-devel\"
1 | prober --config-file=/no/such --zap-time-encoding=nanos | \"ignored\":\"--zap-time-encoding\"
1 | prober --config-file=/no/such | \"level\":\"ERROR\"
1 | prober --config-file=deploy/helm/dependency-watchdog/values.yaml | values.yaml: kubeConfigSecretName
1 | prober --config-file=deploy/helm/dependency-watchdog/values.yaml | expected the name of a Secret
1 | prober --config-file=deploy/helm/dependency-watchdog/values.yaml | dependentResourceInfos: []: expected
1 | prober --config-file=config/prober.yaml --kube-api-qps=-1 | --kube-api-qps=-1
1 | prober --config-file=config/prober.yaml --kubeconfig=/no/such | /no/such
1 | weeder --config-file=config/weeder.yaml --concurrent-reconciles=4 --kubeconfig=/no/such | /no/such";

#[test]
fn each_command_line_has_its_code_and_words() {
    for line in LINES.lines() {
        let [code, words, said] = line.split(" | ").collect::<Vec<_>>()[..] else {
            unreachable!("three columns: {line}")
        };
        let said = said.replace("\\n", "\n");
        let said = said.replace("VERSION", env!("CARGO_PKG_VERSION"));
        let output = sh(&format!("$WATCHDOG {words}"));
        let code = code.parse().ok();
        assert_eq!(output.status.code(), code, "{line}");
        let (written, silent) = match code {
            Some(0) => (&output.stdout, &output.stderr),
            _ => (&output.stderr, &output.stdout),
        };
        let text = String::from_utf8_lossy(written);
        let is_said = match said.ends_with('\n') {
            true => text == said,
            false => text.contains(&said),
        };
        assert!(is_said && silent.is_empty(), "{line}: {text}");
    }
}

/// Files that are refused, each with all that is said of it. A key that is missing may be one that
/// is misspelt, so those that are ignored are shown too.
const REFUSED: [(&str, &str); 2] = [
    (
        "{kubeConfigSecretName: '', probeInterval: 0s, dependantResourceInfos: []}",
        "/dev/stdin: error: kubeConfigSecretName: \"\": expected the name of a Secret
/dev/stdin: error: probeInterval: \"0s\": expected a duration of at least 1s
/dev/stdin: error: dependentResourceInfos: []: expected a list of at least one resource to scale
/dev/stdin: error: dependantResourceInfos: unknown key, ignored
/dev/stdin: refused as the prober's config
",
    ),
    (
        "{servicesAndDependantSelectors: {}, services: {}}",
        "/dev/stdin: error: servicesAndDependantSelectors: {}: expected at least one Service, as {kube-apiserver: {podSelectors: [...]}}
/dev/stdin: error: services: unknown key, ignored
/dev/stdin: refused as the weeder's config
",
    ),
];

#[test]
fn check_config_says_all_that_is_wrong() {
    for (file, said) in REFUSED {
        let output = sh(&format!(
            "echo \"{file}\" | $WATCHDOG check-config /dev/stdin"
        ));
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.code(), &*shown), (Some(1), said));
    }
}

/// The environment, the cluster of a kubeconfig, and what is said of the seed.
const SEEDS: [(&str, &str, &str); 4] = [
    (
        "",
        "server: http://127.0.0.1:1",
        "no answer from 127.0.0.1:1: ",
    ),
    (
        "SSL_CERT_FILE=/dev/null SSL_CERT_DIR=/dev/null",
        "server: https://127.0.0.1:1",
        "No CA certificates were loaded from the system",
    ),
    (
        "HTTPS_PROXY=socks5://user:s3cr3t@127.0.0.1:1",
        "server: https://127.0.0.1:1, insecure-skip-tls-verify: true",
        "the environment's proxy is no http proxy",
    ),
    (
        "HTTPS_PROXY=socks5://user:s3cr3t@127.0.0.1:1 NO_PROXY=10.0.0.0/8,127.0.0.0/8",
        "server: https://127.0.0.1:1, insecure-skip-tls-verify: true",
        "no answer from 127.0.0.1:1: ",
    ),
];

#[test]
fn the_environment_has_authorities_and_a_proxy() {
    for (environment, cluster, said) in SEEDS {
        let output = sh(&format!(
            "echo '{{current-context: it, contexts: [{{name: it, context: {{cluster: it}}}}],
                clusters: [{{name: it, cluster: {{{cluster}}}}}]}}' >$WORK/kubeconfig
            {environment} $WATCHDOG status --kubeconfig=$WORK/kubeconfig"
        ));
        let told = stderr(&output);
        assert!(told.contains(said) && !told.contains("s3cr3t"), "{told}");
    }
}

#[test]
fn a_stderr_that_nobody_reads_or_that_is_closed_does_not_hold_up_the_end() {
    let (reader, mut unread) = std::io::pipe().expect("a pipe");
    // As much as a pipe takes before a writer waits.
    unread.write_all(&[b' '; 65536]).expect("room");
    let (closed, writer) = std::io::pipe().expect("a pipe");
    drop(closed);
    for stderr in [unread, writer] {
        let mut command = Command::new("timeout");
        command.args(["30", BINARY, "prober", "--config-file=/no/such/file"]);
        let status = command.env_remove("KUBECONFIG").stderr(stderr).status();
        assert_eq!(status.expect("it starts").code(), Some(1));
    }
    drop(reader);
}

/// What a command says when there is no space for its answer.
const NO_SPACE: &str = "error: cannot write to stdout: No space left on device (os error 28)\n";

#[test]
fn an_answer_that_nobody_takes_is_an_error_in_one_line() {
    for (command, redirections, said) in [
        ("check-config config/prober.yaml", ">/dev/full", NO_SPACE),
        ("check-config config/prober.yaml", ">/dev/full 2>&1", ""),
        ("check-config config/prober.yaml", ">/dev/full 2>&-", ""),
        ("completions bash", ">/dev/full", NO_SPACE),
        ("completions bash", ">/dev/full 2>&1", ""),
        ("completions bash", ">/dev/full 2>&-", ""),
        ("status --kubeconfig=/no/such", "2>/dev/full", ""),
    ] {
        let output = sh(&format!("$WATCHDOG {command} {redirections}"));
        let found = (output.status.code(), &*stderr(&output));
        assert_eq!(found, (Some(1), said), "{command} {redirections}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for arguments in [
        ["check-config", "config/prober.yaml"],
        ["completions", "bash"],
    ] {
        let (reader, closed) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(BINARY);
        command
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = command.stdout(closed).stderr(Stdio::piped()).spawn();
        let output = output.and_then(|child| child.wait_with_output());
        let output = output.expect("it starts");
        let found = (output.status.code(), &*stderr(&output));
        assert_eq!(found, (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn the_soft_limit_of_open_files_is_raised_to_the_hard_one() {
    let log = stderr(&sh(
        "ulimit -Sn 100; ulimit -Hn 4000
        $WATCHDOG prober --kubeconfig=/no/such/kubeconfig --config-file=config/prober.yaml",
    ));
    let mut lines = log.lines();
    let raised = lines.find(|line| line.contains("limit of open files raised"));
    let is_raised = raised.is_some_and(|line| line.contains("\"from\":100,\"to\":4000"));
    assert!(is_raised, "{log}");
}

#[test]
fn a_signal_ends_it_in_time_even_when_the_seed_is_out_of_reach() {
    for signal in ["TERM", "INT"] {
        // Port 1 of the loopback: nobody listens there. It logs once it has begun to work, when the
        // signals are caught already. Then it may take 5 s.
        let output = sh(&format!(
            "echo '{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}],
                users: [{{name: u, user: {{token: t}}}}], clusters: [{{name: c, cluster: {{server: \"http://127.0.0.1:1\"}}}}]}}' >$WORK/kubeconfig
            $WATCHDOG prober --zap-log-level=debug --pprof-bind-addr=0 --metrics-bind-addr=0 --health-bind-addr=0 \\
                --config-file=config/prober.yaml --kubeconfig=$WORK/kubeconfig 2>$WORK/log &
            until [ -s $WORK/log ]; do sleep 0.05; done
            kill -{signal} $!
            timeout 5 tail --pid=$! -f /dev/null || kill -KILL $!
            wait $!
            code=$?
            cat $WORK/log >&2
            exit $code"
        ));
        assert_eq!(
            output.status.code(),
            Some(0),
            "{signal}: {}",
            stderr(&output)
        );
    }
}
