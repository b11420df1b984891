//! The config file of a running agent: read every few seconds, reloaded when it changed and is
//! valid.
//!
//! Kubernetes replaces the files of a ConfigMap by turning a symbolic link; reading the file
//! through the link, again and again, notices that on every file system.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::sleep;

use crate::document::{ConfigError, Contents, Loaded};
use crate::events::Events;

/// Interval at which the file is read. A kubelet takes up to a minute to bring a changed ConfigMap to the
/// file.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

pub type Load<T> = fn(&Contents) -> Result<Loaded<T>, ConfigError>;

pub struct ConfigFile<T> {
    path: PathBuf,
    load: Load<T>,
    /// Contents read last, good or bad; `None` if they could not be read.
    read: Option<Contents>,
    reloads: Family<[(&'static str, &'static str); 1], Counter>,
    refused: Gauge,
    reporter: Option<(Events, ObjectReference)>,
}

impl<T> ConfigFile<T> {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// When it cannot be read or is wrong; then every wrong field is named.
    pub fn open(path: &Path, load: Load<T>) -> Result<(T, Self), ConfigError> {
        let read = Contents::of_regular(path)?;
        let Loaded { config, warnings } = load(&read)?;
        let file = Self {
            path: path.to_owned(),
            load,
            read: Some(read),
            reloads: Family::default(),
            refused: Gauge::default(),
            reporter: None,
        };
        file.warn(warnings);
        Ok((config, file))
    }

    /// Shows in a registry, and by Events about `self_reference`, how changes of the file are met.
    pub fn report_to(
        &mut self,
        registry: &mut Registry,
        events: Events,
        self_reference: ObjectReference,
    ) {
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
        self.reporter = Some((events, self_reference));
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
            let read = Contents::of_regular(&self.path);
            if read.as_ref().ok() == self.read.as_ref() {
                continue;
            }
            self.read = None;
            match read.and_then(|read| (self.load)(self.read.insert(read))) {
                Ok(loaded) => return self.accept(loaded),
                Err(error) => self.refuse(&error),
            }
        }
    }

    fn accept(&self, Loaded { config, warnings }: Loaded<T>) -> T {
        self.reloads.get_or_create(&[("result", "taken")]).inc();
        self.refused.set(0);
        tracing::info!(file = %self.path.display(), "config file changed and is applied");
        self.warn(warnings);
        config
    }

    fn refuse(&self, error: &ConfigError) {
        self.reloads.get_or_create(&[("result", "refused")]).inc();
        self.refused.set(1);
        tracing::error!(error = %error, "config file changed and is refused, the one before stays in force");
        if let Some((events, self_reference)) = &self.reporter {
            events.warning(self_reference, "ConfigRefused", error.to_string());
        }
    }

    fn warn(&self, warnings: Vec<String>) {
        for warning in warnings {
            tracing::warn!(file = %self.path.display(), "{warning}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use prometheus_client::encoding::text::encode;

    use super::*;

    #[derive(Default, serde::Deserialize, serde::Serialize)]
    #[serde(default)]
    struct Sample {
        number: i32,
    }

    fn number(contents: &Contents) -> Result<Loaded<i32>, ConfigError> {
        contents.load(&Sample::default(), &[], |sample, _| sample.number)
    }

    /// A folder as a kubelet lays it out: the file is a link through `..data`, which is turned.
    struct Mounted {
        folder: tempfile::TempDir,
        version: u32,
    }

    impl Mounted {
        fn new(text: &str) -> Self {
            let mut mounted = Self {
                folder: tempfile::tempdir().unwrap(),
                version: 0,
            };
            mounted.turn(text);
            symlink("..data/config.yaml", mounted.file()).unwrap();
            mounted
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("config.yaml")
        }

        fn turn(&mut self, text: &str) {
            self.version += 1;
            let version = format!("..{}", self.version);
            let at = |name: &str| self.folder.path().join(name);
            std::fs::create_dir(at(&version)).unwrap();
            std::fs::write(at(&version).join("config.yaml"), text).unwrap();
            symlink(&version, at("..new")).unwrap();
            std::fs::rename(at("..new"), at("..data")).unwrap();
        }
    }

    fn metric(registry: &Registry, line: &str) -> bool {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text.lines().any(|found| found == line)
    }

    #[test]
    fn what_is_remembered_of_the_file_is_what_was_applied() {
        let says_something_else_each_time = Path::new("/proc/sys/kernel/random/uuid");
        let text = |contents: &Contents| {
            Ok(Loaded {
                config: contents.text()?.to_owned(),
                warnings: Vec::new(),
            })
        };
        let (applied, file) = ConfigFile::open(says_something_else_each_time, text).unwrap();
        assert_eq!(file.read.unwrap().text().unwrap(), applied);
    }

    #[tokio::test(start_paused = true)]
    async fn a_valid_change_is_applied_and_an_invalid_one_refused() {
        let mut mounted = Mounted::new("number: 1");
        let (first, mut file) = ConfigFile::open(&mounted.file(), number).unwrap();
        assert_eq!(first, 1);
        let mut registry = Registry::default();
        file.report_to(&mut registry, Events::none(), ObjectReference::default());

        mounted.turn("number: one");
        assert!(
            tokio::time::timeout(POLL_INTERVAL * 3, file.next())
                .await
                .is_err(),
            "refused"
        );
        assert!(metric(&registry, "dwd_config_refused 1"));
        assert!(
            metric(&registry, "dwd_config_reloads_total{result=\"refused\"} 1"),
            "refused once, however often it is looked at"
        );

        mounted.turn("number: 2");
        assert_eq!(file.next().await, 2);
        assert!(metric(&registry, "dwd_config_refused 0"));
        assert!(metric(
            &registry,
            "dwd_config_reloads_total{result=\"taken\"} 1"
        ));
    }

    #[test]
    fn a_named_pipe_in_place_of_the_file_is_refused_without_a_wait() {
        let mounted = Mounted::new("number: 1");
        let (_, mut file) = ConfigFile::open(&mounted.file(), number).unwrap();
        std::fs::remove_file(mounted.file()).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(mounted.file())
            .status();
        assert!(made.unwrap().success());
        let path = mounted.file();
        let (sender, receiver) = std::sync::mpsc::channel();
        // A thread of its own, which a read of the pipe would hold for ever.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap();
            let changed = runtime
                .block_on(async { tokio::time::timeout(POLL_INTERVAL * 3, file.next()).await })
                .is_ok();
            let refused = ConfigFile::open(&path, number).err();
            sender.send((changed, file.refused()(), refused)).unwrap();
        });
        let (changed, refused, error) = receiver
            .recv_timeout(Duration::from_secs(30))
            .expect("an answer");
        assert_eq!((changed, refused), (false, true));
        let error = error.expect("refused").to_string();
        assert!(
            error.ends_with("config.yaml: not a regular file"),
            "{error}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_goes_away_changes_nothing_and_is_applied_again_when_it_is_back() {
        let mut mounted = Mounted::new("number: 1");
        let (_, mut file) = ConfigFile::open(&mounted.file(), number).unwrap();
        std::fs::remove_file(mounted.folder.path().join("..data")).unwrap();
        assert!(
            tokio::time::timeout(POLL_INTERVAL * 3, file.next())
                .await
                .is_err()
        );
        mounted.turn("number: 3");
        assert_eq!(file.next().await, 3);
    }
}
