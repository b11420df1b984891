//! The config file of a running agent: read every few seconds, reloaded when it changed and is
//! valid.
//!
//! Kubernetes replaces the files of a ConfigMap by turning a symbolic link; reading the file
//! through the link, again and again, notices that on every file system.

use std::path::{Path, PathBuf};
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::sleep;

use crate::document::{ConfigError, Loaded, Problems, load};
use crate::events::Events;
use crate::metrics::LabelledCounters;

/// Interval at which the file is read. A kubelet takes up to a minute to bring a changed ConfigMap to the
/// file.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

pub type Parse<T> = fn(&str) -> Result<Loaded<T>, Problems>;

pub struct ConfigFile<T> {
    path: PathBuf,
    parse: Parse<T>,
    /// Outcome of the last reading, good or bad.
    read: Result<Loaded<T>, ConfigError>,
    reloads: LabelledCounters,
    refused: Gauge,
    events: Events,
}

impl<T: Clone + PartialEq> ConfigFile<T> {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// When it cannot be read or is wrong.
    pub fn open(path: &Path, parse: Parse<T>) -> Result<(T, Self), ConfigError> {
        let loaded = load(path, parse)?;
        let file = Self {
            path: path.to_owned(),
            parse,
            read: Ok(loaded.clone()),
            reloads: LabelledCounters::default(),
            refused: Gauge::default(),
            events: Events::none(),
        };
        Ok((file.warned(loaded), file))
    }

    /// Shows in a registry, and by Events, how changes of the file are met.
    pub fn report_to(&mut self, registry: &mut Registry, events: Events) {
        registry.register(
            "dwd_config_reloads",
            "Changes of the config file by what became of them",
            self.reloads.clone(),
        );
        let help =
            "Whether the config file as it is now is refused (1), so that an older one is in force";
        registry.register("dwd_config_refused", help, self.refused.clone());
        for result in ["taken", "refused"] {
            drop(self.reloads.get_or_create(&[("result", result)]));
        }
        self.events = events;
    }

    /// Returns a test that is true while the file is refused, so that an older one is in force.
    pub fn refused(&self) -> impl Fn() -> bool + Clone + Send + Sync + 'static {
        let refused = self.refused.clone();
        move || refused.get() != 0
    }

    /// Waits for the next valid change. What is not valid is refused and reported. Can be cancelled
    /// at any time.
    pub async fn next(&mut self) -> T {
        loop {
            sleep(POLL_INTERVAL).await;
            let read = load(&self.path, self.parse);
            if read == self.read {
                continue;
            }
            self.read = read.clone();
            match read {
                Ok(loaded) => return self.accept(loaded),
                Err(error) => self.refuse(&error),
            }
        }
    }

    fn accept(&self, loaded: Loaded<T>) -> T {
        self.reloads.get_or_create(&[("result", "taken")]).inc();
        self.refused.set(0);
        tracing::info!(file = %self.path.display(), "config file changed and is applied");
        self.warned(loaded)
    }

    fn refuse(&self, error: &ConfigError) {
        self.reloads.get_or_create(&[("result", "refused")]).inc();
        self.refused.set(1);
        tracing::error!(error = %error, "config file changed and is refused, the one before stays in force");
        self.events.warning("", "ConfigRefused", &error.to_string());
    }

    /// Returns the config, and logs its warnings.
    fn warned(&self, Loaded { config, warnings }: Loaded<T>) -> T {
        for warning in warnings {
            tracing::warn!(file = %self.path.display(), "{warning}");
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use prometheus_client::encoding::text::encode;
    use tokio::time::timeout;

    use super::*;
    use crate::document::parse;

    #[derive(serde::Deserialize, serde::Serialize)]
    struct Sample {
        number: i32,
    }

    fn number(text: &str) -> Result<Loaded<i32>, Problems> {
        parse(text, |sample: Sample, _| sample.number)
    }

    /// Writes a file as a kubelet does: a folder of its own, to which the link `..data` is turned.
    fn turn(folder: &Path, text: &str) {
        let version = tempfile::tempdir_in(folder).unwrap().keep();
        std::fs::write(version.join("config.yaml"), text).unwrap();
        symlink(version, folder.join("..new")).unwrap();
        std::fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    }

    async fn changes(file: &mut ConfigFile<i32>) -> Option<i32> {
        timeout(POLL_INTERVAL * 3, file.next()).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_valid_change_is_applied_and_an_invalid_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        turn(folder, "number: 1");
        let (first, mut file) =
            ConfigFile::open(&folder.join("..data/config.yaml"), number).unwrap();
        let mut registry = Registry::default();
        file.report_to(&mut registry, Events::none());
        let shown = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            let mut lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
            lines.sort_unstable();
            lines.join(" ")
        };
        assert_eq!((first, changes(&mut file).await), (1, None));
        turn(folder, "number: one");
        assert_eq!(changes(&mut file).await, None);
        // Refused once, however often it is looked at.
        let refused = r#"dwd_config_refused 1 dwd_config_reloads_total{result="refused"} 1 dwd_config_reloads_total{result="taken"} 0"#;
        assert_eq!(shown(), refused);
        turn(folder, "number: 2");
        assert_eq!(changes(&mut file).await, Some(2));
        let taken = r#"dwd_config_refused 0 dwd_config_reloads_total{result="refused"} 1 dwd_config_reloads_total{result="taken"} 1"#;
        assert_eq!(shown(), taken);
        // One that goes away changes nothing, and is applied again when it is back.
        std::fs::remove_file(folder.join("..data")).unwrap();
        assert_eq!(changes(&mut file).await, None);
        turn(folder, "number: 2");
        assert_eq!(changes(&mut file).await, Some(2));
    }
}
