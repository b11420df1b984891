use super::*;
use futures::channel::mpsc;
use std::future::pending;
use tokio::time::Instant;

/// The exit code of this work when signals come at these seconds.
async fn code(work: impl AsyncFnOnce(CancellationToken) -> anyhow::Result<()>, at: &[u64]) -> u8 {
    let shutdown = CancellationToken::new();
    let (mut sender, signals) = mpsc::channel(4);
    let at = at.to_vec();
    let signalling = async move {
        let start = Instant::now();
        for second in at {
            tokio::time::sleep_until(start + Duration::from_secs(second)).await;
            let _ = sender.try_send("SIGTERM");
        }
        pending::<()>().await;
    };
    tokio::select! {
        code = supervise(Agent::Prober, work(shutdown.clone()), &shutdown, signals) => code,
        () = signalling => unreachable!("it waits for ever"),
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_by_itself_decides_the_exit_code() {
    assert_eq!(code(async |_| Ok(()), &[]).await, 0);
    assert_eq!(code(async |_| anyhow::bail!("lost"), &[]).await, 1);
    assert_eq!(code(async |_| panic!("unforeseen"), &[]).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_signal_cancels_the_work_and_waits_for_its_end() {
    let start = Instant::now();
    let stops_in_3_s = async |shutdown: CancellationToken| {
        shutdown.cancelled().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok(())
    };
    assert_eq!(code(stops_in_3_s, &[10]).await, 0);
    assert_eq!(start.elapsed(), Duration::from_secs(13));
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_left_before_the_pod_is_killed() {
    let start = Instant::now();
    assert_eq!(code(async |_| pending().await, &[10]).await, 1);
    assert_eq!(start.elapsed(), Duration::from_secs(10) + STOP_LIMIT);
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_ends_it_at_once() {
    let start = Instant::now();
    assert_eq!(code(async |_| pending().await, &[10, 11]).await, 1);
    assert_eq!(start.elapsed(), Duration::from_secs(11));
}
