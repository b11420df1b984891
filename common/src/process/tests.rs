use super::*;
use futures::stream;
use std::pin::pin;
use tokio::time::{Instant, sleep, sleep_until};

/// The exit code of this work when signals come at these seconds.
async fn code(work: impl AsyncFnOnce(CancellationToken) -> anyhow::Result<()>, at: &[u64]) -> u8 {
    let (shutdown, start) = (CancellationToken::new(), Instant::now());
    let signals = stream::iter(at).then(|second| async move {
        sleep_until(start + Duration::from_secs(*second)).await;
        "SIGTERM"
    });
    let signals = pin!(signals.chain(stream::pending()));
    supervise(Agent::Prober, work(shutdown.clone()), &shutdown, signals).await
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_by_itself_decides_the_exit_code() {
    assert_eq!(code(async |_| Ok(()), &[]).await, 0);
    assert_eq!(code(async |_| anyhow::bail!("lost"), &[]).await, 1);
    assert_eq!(code(async |_| panic!("unforeseen"), &[]).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_the_work_in_its_time_and_a_second_one_at_once() {
    for (takes, signals, expected, end) in [
        (3, &[10][..], 0, 13_000),
        (100, &[10], 1, 10_000 + STOP_LIMIT.as_millis()),
        (100, &[10, 11], 1, 11_000),
    ] {
        let start = Instant::now();
        let work = async |shutdown: CancellationToken| {
            shutdown.cancelled().await;
            sleep(Duration::from_secs(takes)).await;
            Ok(())
        };
        assert_eq!(code(work, signals).await, expected);
        assert_eq!(start.elapsed().as_millis(), end);
    }
}
