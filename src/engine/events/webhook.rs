//! One try of a webhook: a signed POST of exactly the bytes that were signed, within a total time, to an address that the guard lets pass. Redirects are not followed;
//! of the answer the status counts and nothing else is kept.

use super::Telling;
use crate::{
    base::{chain::chain, clock::Clock, outgoing::refused},
    domain::{
        delivery::{Tried, WebhookSecret},
        event::MEDIA_TYPE,
        time::Timestamp,
    },
};
use reqwest::{
    Response, Url,
    header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER},
};
use reqwest_middleware::ClientWithMiddleware;
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};
use std::time::Duration;

const USER_AGENT: &str = concat!("protocol-bridge/", env!("CARGO_PKG_VERSION"));
/// So much of an answer is read, so that its connection can serve again; whoever says more loses the connection.
const MOST_ANSWER: usize = 16 * 1024;
/// Idle connections are closed before common balancers forget them.
const IDLE: Duration = Duration::from_secs(45);

/// The client; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    client: ClientWithMiddleware,
    clock: Clock,
}

/// What is sent, to whom, and what proves that it is from us.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) url: &'a str,
    /// The event's id; the same on every try.
    pub(super) id: &'a str,
    pub(super) body: String,
    /// Each signs: more than one while a secret is being replaced.
    pub(super) secrets: &'a [WebhookSecret],
}

impl Sender {
    pub(super) fn new(telling: &Telling, clock: Clock) -> reqwest::Result<Self> {
        let builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .timeout(telling.config.timeout)
            .connect_timeout(telling.config.timeout)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(telling.config.max_per_receiver);
        Ok(Self { client: telling.guard().client(builder)?.build(), clock })
    }

    pub(super) async fn send(&self, message: Message<'_>) -> Tried {
        let Ok(url) = Url::parse(message.url) else { return Tried::failed("the address cannot be read") };
        let timestamp = self.clock.now().as_seconds();
        let Some(signature) = sign(&message, timestamp) else { return Tried::failed("the body cannot be signed") };
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, MEDIA_TYPE)
            .header(HEADER_WEBHOOK_ID, message.id)
            .header(HEADER_WEBHOOK_TIMESTAMP, timestamp)
            .header(HEADER_WEBHOOK_SIGNATURE, signature)
            .body(message.body);
        match request.send().await {
            Ok(response) => {
                let tried = Tried::answered(response.status().as_u16(), retry_after(response.headers(), self.clock.now()));
                read_some(response).await;
                tried
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), "a webhook could not be sent");
                Tried::failed(words(&error))
            }
        }
    }
}

fn sign(message: &Message<'_>, timestamp: i64) -> Option<String> {
    let sign = |secret: &WebhookSecret| {
        Webhook::from_bytes(secret.bytes().to_vec()).ok()?.sign(message.id, timestamp, message.body.as_bytes()).ok()
    };
    let signatures: Option<Vec<String>> = message.secrets.iter().map(sign).collect();
    signatures.filter(|signatures| !signatures.is_empty()).map(|signatures| signatures.join(" "))
}

/// What went wrong, in words that hold nothing from the other side.
fn words(error: &reqwest_middleware::Error) -> String {
    if let Some(refusal) = refused(error) {
        return format!("refused: {refusal}");
    }
    let word = match error {
        reqwest_middleware::Error::Reqwest(error) if error.is_timeout() => "timeout",
        reqwest_middleware::Error::Reqwest(error) if error.is_connect() => "no connection",
        _ => "the connection broke off",
    };
    word.to_owned()
}

/// In seconds, or as a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((Timestamp::default() + date).since(now))
}

/// The time limit of the request holds here, too.
async fn read_some(mut response: Response) {
    let mut read = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        read += chunk.len();
        if read > MOST_ANSWER {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let read = |text: &str| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]), now);
        assert_eq!(read("120"), Some(Duration::from_mins(2)));
        assert_eq!(read("Mon, 30 Nov 2026 12:01:00 GMT"), Some(Duration::from_mins(1)));
        assert_eq!(read("Mon, 30 Nov 2026 11:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!((read("soon"), read("-5"), read("")), (None, None, None));
    }

    /// The example of the specification.
    #[test]
    fn each_secret_signs_the_exact_bytes() {
        let secret: WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let body = r#"{"test": 2432232314}"#.to_owned();
        let both = [secret.clone(), secret];
        let message = Message { url: "", id: "msg_p5jXN8AQM9LWM0D4loKWxJek", body, secrets: &both };
        let one = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(sign(&message, 1_614_265_330).unwrap(), format!("{one} {one}"));
        assert_eq!(sign(&Message { secrets: &[], ..message }, 1), None);
    }
}
