//! What run-books tell people to run does what they say.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use deploy_tests::installation::container;
use deploy_tests::repository;
use deploy_tests::tools::{good, overlay, system};
use prober::config::Config;
use prober::core::plan::{Direction, levels};
use prober::core::replicas::{MELTDOWN_PROTECTION_ACTIVE, REPLICAS};
use prober::seed::PAUSE;
use serde_json::{Value, json};

/// Writes down what it is called with, and knows what Deployments there are.
const STAND_IN: &str =
    "#!/bin/sh\necho \"${0##*/} $*\" >> \"$CALLS\"\ncase \"$*\" in 'get deployments '*) cat \"$DEPLOYMENTS\" ;; esac\n";

/// The first commands below a heading of a page.
fn commands(page: &str, heading: &str) -> Result<String> {
    let page = repository::text(page)?;
    let section = page.split(&format!("\n## {heading}\n")).nth(1).with_context(|| format!("no {heading}"))?;
    let block = section.split("\n```sh\n").nth(1).and_then(|rest| rest.split("\n```").next());
    block.map(ToOwned::to_owned).with_context(|| format!("no commands below {heading}"))
}

/// Runs commands with these Deployments; returns what they called, but for what only reads.
fn called(commands: &str, deployments: &Value) -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("deployments.json"), deployments.to_string())?;
    for name in ["kubectl", "sleep"] {
        std::fs::write(file(name), STAND_IN)?;
        std::fs::set_permissions(file(name), Permissions::from_mode(0o755))?;
    }
    let jq = system("jq", "jq")?;
    let path = [folder.path(), jq.parent().context("a folder")?, Path::new("/usr/bin"), Path::new("/bin")];
    let mut shell = Command::new("sh");
    shell.args(["-euc", commands]).env("PATH", std::env::join_paths(path)?);
    good(shell.env("CALLS", file("calls")).env("DEPLOYMENTS", file("deployments.json")).output()?)?;
    let calls = std::fs::read_to_string(file("calls"))?;
    Ok(calls.lines().filter(|call| !call.starts_with("kubectl get ")).map(ToOwned::to_owned).collect())
}

fn deployment(namespace: &str, name: &str, annotations: Value) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name, "annotations": annotations}, "spec": {"replicas": 0}})
}

#[test]
fn what_is_held_down_comes_back_by_hand_in_order_and_nothing_else() -> Result<()> {
    let config = Config::load(&repository::path("config/prober.yaml"))?.config;
    let order: Vec<&str> = levels(&config.dependents, Direction::Up)
        .into_iter()
        .flatten()
        .map(|at| config.dependents[at].resource.name.as_str())
        .collect();
    let [kcm, mcm, ca] = order[..] else { anyhow::bail!("{order:?}") };
    let items = json!({"items": [
        deployment("shoot--a--a", ca, json!({REPLICAS: "1", MELTDOWN_PROTECTION_ACTIVE: ""})),
        deployment("shoot--a--a", mcm, json!({REPLICAS: "many", MELTDOWN_PROTECTION_ACTIVE: ""})),
        deployment("shoot--a--a", kcm, json!({REPLICAS: "2", MELTDOWN_PROTECTION_ACTIVE: ""})),
        deployment("shoot--b--b", kcm, json!({MELTDOWN_PROTECTION_ACTIVE: ""})),
        deployment("shoot--c--c", kcm, json!({REPLICAS: "0", MELTDOWN_PROTECTION_ACTIVE: ""})),
        // Somebody else's doing, and somebody else's Deployments.
        deployment("shoot--b--b", mcm, Value::Null),
        deployment("shoot--b--b", ca, json!({REPLICAS: "3"})),
        deployment("shoot--b--b", "etcd-druid", json!({REPLICAS: "3", MELTDOWN_PROTECTION_ACTIVE: ""})),
    ]});
    let mut expected = vec![format!("kubectl annotate namespace garden {PAUSE}=true --overwrite")];
    for (name, held) in [(kcm, &[("a", 2), ("b", 1), ("c", 1)][..]), (mcm, &[("a", 1)]), (ca, &[("a", 1)])] {
        for (shoot, replicas) in held {
            let of = format!("kubectl -n shoot--{shoot}--{shoot}");
            expected.push(format!("{of} scale deployment {name} --replicas={replicas}"));
            expected.push(format!("{of} annotate deployment {name} {REPLICAS}- {MELTDOWN_PROTECTION_ACTIVE}-"));
        }
        expected.push("sleep 30".to_owned());
    }
    assert_eq!(called(&commands("docs/run-books/README.md", "Bring everything back by hand")?, &items)?, expected);
    Ok(())
}

#[test]
fn the_prober_is_asked_in_its_pod_with_the_program_and_the_config_that_are_there() -> Result<()> {
    let objects = overlay("plain")?;
    let command = container(&objects, "dependency-watchdog-prober")?["command"].clone();
    let word = |begin: &str| {
        let mut words = command.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.find_map(|word| word.strip_prefix(begin)).with_context(|| format!("no {begin} in {command}"))
    };
    let (program, config) = (word("/")?, word("--config-file=")?);
    let asked = commands("docs/cli.md", "Without the binary at hand")?;
    for command in ["status", "explain NAMESPACE"] {
        let call = format!(
            "kubectl -n garden exec deployment/dependency-watchdog-prober -- /{program} {command} \\\n  --config-file {config}"
        );
        ensure!(asked.contains(&call), "{call} is not in {asked}");
    }
    Ok(())
}
