//! `GET /docs/migration`: how callers move from v1 to the task API; the `deprecation` link of every v1 answer leads here.

use crate::http::page::page;
use axum::response::Response;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../../docs/migration.md");

/// How to move from v1 to the task API.
#[utoipa::path(get, path = "/docs/migration", tag = "health", operation_id = "migrationPage",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html")))]
pub async fn migration_page() -> Response {
    static HTML: LazyLock<String> = LazyLock::new(|| rendered(TEXT));
    page("Moving from v1 to the task API", &HTML)
}

/// Our own Markdown as HTML; wide tables scroll by themselves.
fn rendered(markdown: &str) -> String {
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).flat_map(|event| match event {
        Event::Start(Tag::Table(_)) => vec![Event::Html("<div class=\"table\">".into()), event],
        Event::End(TagEnd::Table) => vec![event, Event::Html("</div>\n".into())],
        _ => vec![event],
    });
    let mut text = String::new();
    html::push_html(&mut text, events);
    text
}
