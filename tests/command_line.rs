//! The command line of the real binary, as far as no cluster is needed.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

const GARDENERS_CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/prober.yaml");

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dependency-watchdog"));
    // Nothing of the caller's own clusters may be found.
    command.env_clear().stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> Output {
    binary().args(words).output().expect("the binary runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// A file of this content that only this test uses.
fn file(name: &str, content: &str) -> PathBuf {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    std::fs::write(&path, content).expect("written");
    path
}

#[test]
fn each_command_line_has_its_code_and_words() {
    // Exit code, and what is written: help to stdout, all else to stderr.
    let config = format!("--config-file={GARDENERS_CONFIG}");
    let weeders = concat!(
        "--config-file=",
        env!("CARGO_MANIFEST_DIR"),
        "/config/weeder.yaml"
    );
    let nowhere = "--kubeconfig=/no/such";
    let unknown = "error: unexpected argument '--no-such-flag' found\n";
    for (words, code, said) in [
        (&[][..], 0, "check-config"),
        (&["help", "explain"], 0, "The shoot's namespace on the seed"),
        (&["help", "weeder"], 0, "--config-file"),
        (
            &["--version"],
            0,
            concat!("dependency-watchdog ", env!("CARGO_PKG_VERSION"), "\n"),
        ),
        (&["help", "nope"], 2, "prober"),
        (&["probber"], 2, "'probber'"),
        (&["explain"], 2, "error: "),
        (&["restore", "--yes"], 2, "error: "),
        (&["restore", "a", "--all"], 2, "error: "),
        (&["prober", "--no-such-flag"], 2, unknown),
        (&["prober"], 1, "--config-file"),
        (
            &["prober", "--config-file=/no/such"],
            1,
            "/no/such: No such file",
        ),
        (
            &["prober", &config, "--kube-api-qps=-1"],
            1,
            "--kube-api-qps=-1",
        ),
        (&["prober", &config, nowhere], 1, "/no/such"),
        // As Gardener starts it.
        (
            &["weeder", weeders, "--concurrent-reconciles=4", nowhere],
            1,
            "/no/such",
        ),
    ] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        let (written, silent) = match code {
            0 => (&output.stdout, &output.stderr),
            _ => (&output.stderr, &output.stdout),
        };
        let text = String::from_utf8_lossy(written);
        assert!(
            text.contains(said) && silent.is_empty(),
            "{words:?}: {text}"
        );
    }
    assert_eq!(stderr(&run(&["prober", "--no-such-flag"])), unknown);
}

#[test]
fn all_that_is_wrong_in_a_config_file_is_reported_at_once() {
    let path = file(
        "wrong.yaml",
        "kubeConfigSecretName: ''\nprobeInterval: 30\nnodeLeaseFailureFraction: 2\n",
    );
    let output = run(&["prober", &format!("--config-file={}", path.display())]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    for expected in [
        format!("{}: 4 errors", path.display()),
        "kubeConfigSecretName".into(),
        "probeInterval: 30: expected a duration".into(),
        "nodeLeaseFailureFraction: 2: expected".into(),
        "dependentResourceInfos: missing".into(),
    ] {
        assert!(message.contains(&expected), "{expected}: {message}");
    }
}

#[test]
fn errors_are_lines_of_the_log_and_zaps_other_flags_are_named_as_ignored() {
    let log = stderr(&run(&[
        "prober",
        "--config-file=/no/such/file",
        "--zap-encoder=CONSOLE",
        "--zap-devel=true",
        "--zap-time-encoding=nano",
    ]));
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let (ignored, error) = (&lines[0], &lines[lines.len() - 1]);
    assert_eq!(
        (&ignored["level"], &ignored["ignored"]),
        (
            &"info".into(),
            &"--zap-encoder --zap-time-encoding --zap-devel".into()
        )
    );
    assert_eq!(
        (&error["level"], &error["logger"]),
        (&"error".into(), &"dwd".into())
    );
}

#[test]
fn a_stderr_that_nobody_reads_or_that_is_closed_does_not_hold_up_the_end() {
    let (_reader, mut writer) = std::io::pipe().expect("a pipe");
    // As much as a pipe takes before a writer waits.
    writer.write_all(&[b' '; 65536]).expect("room");
    let mut child = binary()
        .args(["prober", "--config-file=/no/such/file"])
        .stderr(writer)
        .spawn()
        .expect("it starts");
    let (sender, receiver) = sync_channel(1);
    let waiting = std::thread::spawn(move || sender.send(child.wait().expect("it ends")));
    let status = receiver.recv_timeout(Duration::from_secs(30));
    assert_eq!(status.expect("in time").code(), Some(1));
    drop(waiting);
    let mut child = binary()
        .args(["prober", "--config-file=/no/such/file"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn the_soft_limit_of_open_files_is_raised_to_the_hard_one() {
    let output = Command::new("sh")
        .args(["-c", "ulimit -Sn 100; ulimit -Hn 4000; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_dependency-watchdog"))
        .args(["prober", "--kubeconfig=/no/such/kubeconfig"])
        .arg(format!("--config-file={GARDENERS_CONFIG}"))
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let log = stderr(&output);
    let raised = log
        .lines()
        .find(|line| line.contains("limit of open files raised"));
    let raised = raised.unwrap_or_else(|| panic!("{log}"));
    assert!(raised.contains("\"from\":100,\"to\":4000"), "{raised}");
}

#[test]
fn a_signal_ends_it_in_time_even_when_the_seed_is_out_of_reach() {
    // Port 1 of the loopback: nobody listens there.
    let kubeconfig = file(
        "nowhere.kubeconfig",
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], \
         users: [{name: u, user: {token: t}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}",
    );
    for signal in ["-TERM", "-INT"] {
        let mut child = binary()
            .args([
                "prober",
                "--zap-log-level=debug",
                "--pprof-bind-addr=0",
                "--metrics-bind-addr=0",
                "--health-bind-addr=0",
            ])
            .arg(format!("--config-file={GARDENERS_CONFIG}"))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let (sender, receiver) = sync_channel(10_000);
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.try_send(line);
            }
        });
        // It logs once it has begun to work, when the signals are caught already.
        receiver
            .recv_timeout(Duration::from_secs(30))
            .expect("a line");
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success());
        // The lines end when the process does: nobody else holds its stderr.
        let (mut last, mut ended) = (String::new(), false);
        for _ in 0..1000 {
            match receiver.recv_timeout(Duration::from_secs(5)) {
                Ok(line) => last = line,
                Err(error) => {
                    ended = error == RecvTimeoutError::Disconnected;
                    break;
                }
            }
        }
        if !ended {
            let _ = child.kill();
        }
        let status = child.wait().expect("a child");
        reader.join().expect("no panic");
        assert_eq!((ended, status.code()), (true, Some(0)), "{signal}: {last}");
    }
}
