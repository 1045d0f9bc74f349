//! Comments in a stream of server-sent events while nothing happens, so that no proxy takes the connection for dead.

use crate::base::clock::Clock;
use axum::response::sse::Event;
use futures::{Stream, StreamExt as _, stream};
use std::time::Duration;

/// Half of the shortest patience of common proxies.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// The events, with a comment whenever there was none for [`HEARTBEAT`].
pub fn beating<E>(clock: Clock, events: impl Stream<Item = Result<Event, E>>) -> impl Stream<Item = Result<Event, E>> {
    stream::unfold((clock, Box::pin(events)), |(clock, mut events)| async move {
        let next = tokio::select! {
            biased;
            event = events.next() => event?,
            () = clock.sleep(HEARTBEAT) => Ok(Event::default().comment("")),
        };
        Some((next, (clock, events)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;
    use axum::response::{IntoResponse as _, Sse};
    use http_body_util::BodyExt as _;
    use std::convert::Infallible;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn silence_is_filled_and_events_put_it_off() {
        let (clock, (tell, told)) = (Clock::manual(Timestamp::default()), mpsc::channel::<Result<Event, Infallible>>(1));
        let events = stream::unfold(told, |mut told| async { told.recv().await.map(|event| (event, told)) });
        let mut body = Sse::new(beating(clock.clone(), events)).into_response().into_body();
        let second = Duration::from_secs(1);
        for round in 0..3 {
            {
                let mut frame = Box::pin(body.frame());
                assert!(futures::poll!(&mut frame).is_pending());
                clock.advance(14 * second);
                assert!(futures::poll!(&mut frame).is_pending(), "round {round}: before its time");
                clock.advance(second);
                assert_eq!(frame.await.unwrap().unwrap().into_data().unwrap(), ": \n\n", "round {round}");
            }
            let mut frame = Box::pin(body.frame());
            assert!(futures::poll!(&mut frame).is_pending());
            clock.advance(14 * second);
            tell.send(Ok(Event::default().data("x"))).await.unwrap();
            assert_eq!(
                frame.await.unwrap().unwrap().into_data().unwrap(),
                "data: x\n\n",
                "round {round}: an event begins the silence anew"
            );
        }
        drop(tell);
        assert!(body.frame().await.is_none(), "it ends with its events");
    }
}
