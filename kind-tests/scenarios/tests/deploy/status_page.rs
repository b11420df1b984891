//! The status page in a real browser: wide, as a phone, by night, in an outage. `make
//! pictures` takes the README's picture from `kind-tests/artefacts`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::page::page;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ProberConfig, ShootCluster, ShootPlan, scenario, start_prober};
use tokio::process::Command;

use crate::repository;

/// Without a window, a sandbox, which root may not have, or any talk with its maker.
const CHROMIUM: &str = "chromium --headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
    --hide-scrollbars --allow-file-access-from-files";
/// The page as wide as a screen, a README on GitHub, and a phone; what is wrong with it there, and its
/// height in a README. Whatever the window, all of it is to be seen without moving sideways, nothing
/// is run, and nothing fetched from elsewhere.
const LOOK: &str = r#"
    <iframe src="page.html" width="1280"></iframe>
    <iframe src="page.html" width="840"></iframe>
    <iframe src="page.html" width="390"></iframe>
    <script>
    const day = matchMedia("(prefers-color-scheme: light)").matches;
    const wrong = frame => {
        const page = frame.contentDocument, all = page.documentElement, view = frame.contentWindow;
        const white = view.getComputedStyle(page.body).backgroundColor === "rgb(255, 255, 255)";
        return [
            all.scrollWidth > view.innerWidth && `${all.scrollWidth} pixels wide on ${view.innerWidth}`,
            page.querySelector("script, img, link, iframe") && "fetches or runs something",
            white !== day && (day ? "dark by day" : "white by night"),
        ].filter(it => it);
    };
    onload = () => {
        const frames = [...document.querySelectorAll("iframe")];
        const height = frames[1].contentDocument.documentElement.scrollHeight;
        document.body.append(JSON.stringify({height, day, wrong: frames.flatMap(wrong)}));
    };
    </script>"#;

/// What the reader's system prefers.
const NIGHT: &str = "--blink-settings=preferredColorScheme=0";
const DAY: &str = "--blink-settings=preferredColorScheme=1";

async fn chromium(folder: &Path, args: &[&str]) -> Result<String> {
    let mut words = CHROMIUM.split_whitespace();
    let mut chromium = Command::new(words.next().context("no program")?);
    chromium
        .args(words)
        .args(args)
        .kill_on_drop(true)
        .current_dir(folder);
    chromium.arg(format!(
        "--user-data-dir={}",
        folder.join("profile").display()
    ));
    let output = chromium.output().await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Looks at the page by day or by night; its height in a README.
async fn look(folder: &Path, scheme: &str) -> Result<u64> {
    let shown = chromium(folder, &[scheme, "--dump-dom", "look.html"]).await?;
    let seen = shown.rfind("{\"height\"").context("not seen")?;
    let mut seen = serde_json::Deserializer::from_str(&shown[seen..]).into_iter::<Value>();
    let seen = seen.next().context("nothing seen")??;
    let is_as_wanted = seen["day"] == (scheme == DAY) && seen["wrong"] == json!([]);
    ensure!(is_as_wanted, "{seen}");
    seen["height"].as_u64().context("no height")
}

#[test]
fn status_page_is_readable_everywhere() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let prober = start_prober(&seed, ProberConfig::default()).await?;
        let shoot = ShootCluster::create(bed, &seed, "page", ShootPlan::default()).await?;
        shoot.after_probes(2).await?;
        shoot.nodes.cut_all();
        shoot
            .held_down(&[(KCM, "2"), (MCM, "1"), (CA, "1")])
            .await?;
        let folder = testbed::reaper::folder("browser")?;
        std::fs::write(folder.join("look.html"), LOOK)?;
        let (_, page) = page(prober.log_file(), "/statusz").await?;
        std::fs::write(folder.join("page.html"), page)?;
        look(&folder, NIGHT).await?;
        let height = look(&folder, DAY).await?;
        // As high as the page is.
        let artefacts = repository::path("kind-tests/artefacts");
        std::fs::create_dir_all(&artefacts)?;
        let picture = format!("--screenshot={}/status-page.png", artefacts.display());
        let size = format!("--window-size=840,{height}");
        chromium(&folder, &[DAY, &size, &picture, "page.html"]).await?;
        shoot.nothing_was_forbidden()
    })
}
