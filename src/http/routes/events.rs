//! `GET /api/events`: events about all agendas or one, as server-sent events that can be taken up again where they broke off.

use crate::{
    domain::{
        event::{self, EventType},
        ids::AgendaId,
    },
    engine::{Follow, Follower},
    http::{Api, Problem, heartbeat::beating, parameters::Query, shapes::ProblemDetails},
    store::event::Event as Told,
};
use axum::{
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, header::CACHE_CONTROL},
    response::{IntoResponse as _, Response, Sse, sse::Event},
};
use futures::stream;
use std::{convert::Infallible, str::FromStr};
use utoipa::ToSchema;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// One event of the stream.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: events are written as text")]
pub struct ToldEvent {
    /// The event's type.
    #[schema(pattern = "^ObesrabuoProtocolGeneration(Completed|Failed|Cancelled)$")]
    event: String,
    /// Its position: give it as Last-Event-ID to go on after it.
    #[schema(pattern = "^[0-9]+$")]
    id: String,
    /// The CloudEvent as JSON.
    data: String,
}

/// Events as they happen, of all agendas or of one.
///
/// Ids are positions, without gaps and in the order in which events became known here. With `Last-Event-ID`, which browsers and libraries send by themselves
/// when they connect again, everything after that position comes first; an event that commits late has a later position. Without it only what is new.
#[utoipa::path(
    get,
    path = "/api/events",
    tag = "events",
    operation_id = "events",
    params(
        ("agendaId" = Option<String>, Query, description = "Only this agenda's.", pattern = "^([A-Za-z0-9][A-Za-z0-9._~-]{0,127})?$"),
        ("type" = Option<String>, Query, description = "Only this type; several are separated by commas."),
        ("after" = Option<u64>, Query, description = "As Last-Event-ID, which wins over it. 0: everything that is kept.", minimum = 0, maximum = 9_223_372_036_854_775_807_u64),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was taken.", pattern = "^[0-9]{1,18}$"),
    ),
    responses(
        (status = 200, description = "The stream; it ends only with the service or the connection.", body = ToldEvent, content_type = "text/event-stream"),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn events(State(api): State<Api>, headers: HeaderMap, mut query: Query) -> Result<Response, Problem> {
    let agenda = query.optional::<AgendaId>("agendaId");
    let types = query.optional::<Types>("type").map(|types| types.0).unwrap_or_default();
    let after = query.optional::<Position>("after");
    query.finish()?;
    let last = last_event_id(&headers)?;
    let follow = Follow { after: last.or(after).map(|position| position.0), agenda, types };
    let follower = api.within_patience(api.engine.follow(follow)).await?;
    let telling = api.clone();
    let events = stream::unfold(Next::Begin(follower), move |next| tell(telling.clone(), next));
    let mut response = Sse::new(beating(api.clock.clone(), events)).into_response();
    // Proxies that buffer would hold events back.
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    Ok(response)
}

enum Next {
    Begin(Follower),
    Event(Follower),
}

async fn tell(api: Api, next: Next) -> Option<(Result<Event, Infallible>, Next)> {
    match next {
        // An id alone is no event, but a client that loses its connection before the first one knows where it was.
        Next::Begin(follower) => Some((Ok(Event::default().id(follower.position().to_string())), Next::Event(follower))),
        Next::Event(mut follower) => {
            let told = tokio::select! {
                // The client connects again and gets the rest from another instance.
                () = api.shutdown.soft().cancelled() => None,
                told = follower.next() => told,
            }?;
            Some((Ok(event(&told)), Next::Event(follower)))
        }
    }
}

fn event(told: &Told) -> Event {
    let body = event::carried(told.id, &told.body, event::LARGEST_BODY);
    Event::default().event(told.event_type.as_str()).id(told.position.unwrap_or_default().to_string()).data(body)
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<Position>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    match text.parse() {
        Ok(position) => Ok(Some(position)),
        Err(_) if text.is_empty() => Ok(None),
        Err(NotAPosition) => Err(Problem::invalid("invalid", "/header/Last-Event-ID", "is no id of this stream; ids are whole numbers")),
    }
}

/// A position as clients send it back.
#[derive(Debug, Clone, Copy)]
struct Position(i64);

impl FromStr for Position {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| plain).map(Self).ok_or(NotAPosition)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no position; positions are whole numbers from 0")]
struct NotAPosition;

/// Types, separated by commas.
#[derive(Debug, Clone)]
struct Types(Vec<EventType>);

impl FromStr for Types {
    type Err = crate::domain::task::UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split(',').map(|kind| kind.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}
