//! Agendas from an HTTP service: `https://host/path/{agendaId}`, or one given address.

use super::{
    Fetched, SourceError,
    agenda_source::{Address, MAX_AGENDA_BYTES},
    upstream::{Answer, Follow, Upstream},
    upstream_error::{UpstreamError, shown},
};
use crate::{
    base::{chain::chain, config},
    domain::ids::AgendaId,
};
use bytes::BytesMut;
use futures::StreamExt as _;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{StatusCode, Url, header::ETAG};

/// The service; cheap to clone.
#[derive(Debug, Clone)]
pub struct HttpSource {
    upstream: Upstream,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    /// With `{agendaId}` in it.
    Template(String),
    One(Url),
}

const PLACEHOLDER: &str = "{agendaId}";
/// RFC 3986's unreserved characters stay as they are.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

impl HttpSource {
    /// The service that `agenda.source` names.
    ///
    /// # Errors
    /// When it is no address with `{agendaId}` in its path or query.
    pub fn from_template(config: &config::AgendaConfig) -> Result<Self, String> {
        let template = &config.source;
        let home = Url::parse(&template.replace(PLACEHOLDER, "x"))
            .map_err(|error| format!("agenda.source {template:?} is no address: {error}"))?;
        let start_of_path = template.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
        if !start_of_path.is_some_and(|path| path.contains(PLACEHOLDER)) {
            return Err(format!("agenda.source {template:?} needs {PLACEHOLDER} in its path or query"));
        }
        let upstream = Upstream::new(config, Some(home))?;
        Ok(Self { upstream, place: Place::Template(template.clone()) })
    }

    /// One agenda at one address; its origin is home.
    ///
    /// # Errors
    /// When it is no address.
    pub fn at(address: &str, config: &config::AgendaConfig) -> Result<Self, String> {
        let url = Url::parse(address).map_err(|error| format!("{address:?} is no address: {error}"))?;
        let upstream = Upstream::new(config, Some(url.clone()))?;
        Ok(Self { upstream, place: Place::One(url) })
    }

    #[must_use]
    pub fn name(&self) -> String {
        match &self.place {
            Place::Template(template) => template.clone(),
            Place::One(url) => url.to_string(),
        }
    }

    #[must_use]
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// # Errors
    /// See [`SourceError`].
    pub async fn fetch(&self, id: &AgendaId) -> Result<Fetched, SourceError> {
        match self.fetch_if_changed(id, None).await? {
            Some(fetched) => Ok(fetched),
            None => Err(SourceError::Unavailable("the agenda service answered 304 to a question without a condition".to_owned())),
        }
    }

    /// # Errors
    /// See [`SourceError`].
    pub async fn fetch_if_changed(&self, id: &AgendaId, etag: Option<&str>) -> Result<Option<Fetched>, SourceError> {
        let url = self.address_of(id)?;
        let answer = self.upstream.get(&url, etag, Follow::SameOrigin).await.map_err(|error| match error {
            UpstreamError::Refused(reason) | UpstreamError::Unreachable(reason) | UpstreamError::TooSlow(reason) => {
                SourceError::Unavailable(reason)
            }
        })?;
        match answer.response.status() {
            StatusCode::OK => read(answer, url).await.map(Some),
            StatusCode::NOT_MODIFIED if etag.is_some() => Ok(None),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(SourceError::NotFound(id.to_string())),
            status => Err(SourceError::Unavailable(format!("{} answered {status}", shown(&url)))),
        }
    }

    fn address_of(&self, id: &AgendaId) -> Result<Url, SourceError> {
        match &self.place {
            Place::One(url) => Ok(url.clone()),
            Place::Template(template) => {
                let encoded = utf8_percent_encode(id.as_str(), ENCODED).to_string();
                Url::parse(&template.replace(PLACEHOLDER, &encoded)).map_err(|error| SourceError::Refused(error.to_string()))
            }
        }
    }
}

async fn read(answer: Answer, asked: Url) -> Result<Fetched, SourceError> {
    let etag = answer.response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
    // After a redirect within the origin, relative references belong to where the agenda really lies.
    let address = Address::Url(answer.response.url().clone());
    let mut bytes = BytesMut::new();
    let mut content = answer.into_stream();
    while let Some(piece) = content.next().await {
        let piece = piece.map_err(|error| {
            tracing::info!(url = shown(&asked), error = chain(&error), "an answer broke off");
            SourceError::Unavailable(format!("{} did not answer to the end in time", shown(&asked)))
        })?;
        if (bytes.len() + piece.len()) as u64 > MAX_AGENDA_BYTES {
            return Err(SourceError::TooLarge { limit: MAX_AGENDA_BYTES });
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Fetched { bytes: bytes.freeze(), etag, address })
}
