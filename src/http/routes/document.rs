//! `GET /protocol/{protocolId}/document.{pdf,docx,html,json}`: the documents, whole or in part.

use super::protocol::load;
use crate::{
    callers::Identity,
    domain::{
        ids::ProtocolId,
        protocol::{Document, Format},
    },
    generator::documents::StoreError,
    http::{
        Api, Problem, RequestProblem,
        conditional::{IfNoneMatch, etag, if_none_match},
        disposition,
        parameters::PathParameter,
        range::{Asked, asked},
        shapes::ProblemDetails,
    },
};
use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{
            ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
            IF_RANGE, RANGE,
        },
    },
    response::{IntoResponse as _, Response},
};

/// One handler per format: the router's patterns cannot end a segment with a parameter.
macro_rules! document_route {
    ($name:ident, $path:literal, $format:ident, $media_type:literal, $operation:literal, $body:ty) => {
        #[doc = concat!("The protocol as ", stringify!($format), ".")]
        #[utoipa::path(
            get,
            path = $path,
            tag = "protocols",
            operation_id = $operation,
            summary = concat!("The protocol as ", stringify!($format), "."),
            params(
                ("protocolId" = Uuid, Path, description = "The protocol."),
                ("Range" = Option<String>, Header, description = "One range of bytes."),
                ("If-None-Match" = Option<String>, Header, description = "An ETag from before."),
            ),
            responses(
                (status = 200, description = "The document.", body = $body, content_type = $media_type, headers(
                    ("ETag" = String, description = "The document's SHA-256."),
                    ("Content-Disposition" = String, description = "A name to save it under."))),
                (status = 206, description = "The part asked for.", body = Vec<u8>, content_type = $media_type),
                (status = 304, description = "As before."),
                (status = 400, description = "Not a protocol's id.", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 404, description = "No such protocol, or not in this format.", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 416, description = "No such part.", body = ProblemDetails, content_type = "application/problem+json"),
            )
        )]
        pub async fn $name(
            State(api): State<Api>,
            Extension(identity): Extension<Identity>,
            PathParameter(id): PathParameter<ProtocolId>,
            method: Method,
            mut headers: HeaderMap,
        ) -> Result<Response, Problem> {
            // A range is defined for GET alone (RFC 9110, 14.2): HEAD tells of the whole.
            if method != Method::GET {
                headers.remove(RANGE);
            }
            serve(&api, &identity, id, Format::$format, &headers).await
        }
    };
}
document_route!(document_pdf, "/protocol/{protocolId}/document.pdf", Pdf, "application/pdf", "protocolAsPdf", Vec<u8>);
document_route!(
    document_docx,
    "/protocol/{protocolId}/document.docx",
    Docx,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "protocolAsDocx",
    Vec<u8>
);
document_route!(document_html, "/protocol/{protocolId}/document.html", Html, "text/html", "protocolAsHtml", String);
document_route!(document_json, "/protocol/{protocolId}/document.json", Json, "application/json", "protocolAsJson", Object);

async fn serve(api: &Api, identity: &Identity, id: ProtocolId, format: Format, asked_with: &HeaderMap) -> Result<Response, Problem> {
    let protocol = load(api, identity, id).await?;
    let document = protocol.documents.iter().find(|document| document.format == format);
    let document = document.ok_or_else(|| Problem::request(RequestProblem::NotFound, format!("The protocol has no {format} document.")))?;
    let tag = etag(&document.sha256);
    let title = format!("{} {}", protocol.number, protocol.record.title);
    let mut response = if if_none_match(asked_with, &tag) == IfNoneMatch::Matches {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        content(api, document, &tag, asked_with).await?
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_DISPOSITION, disposition::inline(title.trim(), format.as_str()));
    // A protocol's documents never change: a correction is another version under another id.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=31536000, immutable"));
    if format == Format::Html {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    }
    Ok(response)
}

async fn content(api: &Api, document: &Document, tag: &HeaderValue, asked_with: &HeaderMap) -> Result<Response, Problem> {
    let size = document.bytes;
    // A client that holds a part of something else gets the whole.
    let same = asked_with.get(IF_RANGE).is_none_or(|held| held == tag);
    let range = asked_with.get(RANGE).and_then(|range| range.to_str().ok()).filter(|_| same);
    let (status, part) = match asked(range, size) {
        Asked::Whole => (StatusCode::OK, None),
        Asked::Part(part) => (StatusCode::PARTIAL_CONTENT, Some(part)),
        Asked::Unsatisfiable => {
            let problem = Problem::request(RequestProblem::RangeNotSatisfiable, format!("The document has {size} bytes."));
            return Err(problem.with_header(CONTENT_RANGE, number_header(format!("bytes */{size}"))));
        }
    };
    let stream = api
        .generator
        .documents()
        .get(&document.blob, part.clone())
        .await?
        .ok_or_else(|| Problem::internal(Missing(document.blob.clone())))?;
    let length = part.as_ref().map_or(size, |part| part.end - part.start);
    let mut headers: Vec<(HeaderName, HeaderValue)> =
        vec![(CONTENT_TYPE, HeaderValue::from_static(document.format.media_type())), (CONTENT_LENGTH, HeaderValue::from(length))];
    if let Some(part) = part {
        headers.push((CONTENT_RANGE, number_header(format!("bytes {}-{}/{size}", part.start, part.end - 1))));
    }
    Ok((status, HeaderMap::from_iter(headers), Body::from_stream(stream)).into_response())
}

fn number_header(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("digits and ASCII punctuation are a header value")
}

/// A row names a blob that the store does not have.
#[derive(Debug, thiserror::Error)]
#[error("the document store has no blob {0}")]
struct Missing(String);

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::request(RequestProblem::Unavailable, "The document store does not answer; ask again.").retry_after(5).because(error)
    }
}
