//! The frame of the pages that explain things: one look, no script, nothing from elsewhere. Readable on a phone, in the dark and on paper.

use axum::{
    http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1d2430; --quiet: #5b6675; --line: #d8dee6; --soft: #f4f6f9; --link: #0b57b0; --back: #fff; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --quiet: #9aa6b5; --line: #353d49; --soft: #1c222b; --link: #7db4f5; --back: #12161c; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--text); background: var(--back); font: 16px/1.6 system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }
nav { border-bottom: 1px solid var(--line); padding: .7rem 1.2rem; display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; }
nav b { font-weight: 650; }
main { max-width: 60rem; margin: 0 auto; padding: .8rem 1.2rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.25; margin: 1.2rem 0 .6rem; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1.08rem; margin: 1.6rem 0 .5rem; }
p, ul, ol, table, pre { margin: .7rem 0; }
a { color: var(--link); }
code { font: .88em/1.5 ui-monospace, 'DejaVu Sans Mono', monospace; background: var(--soft); border-radius: 4px; padding: .1em .3em; overflow-wrap: break-word; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto; }
pre code { background: none; padding: 0; overflow-wrap: normal; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem; border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 600; border-bottom-width: 2px; }
th:empty { padding: 0; }
.quiet { color: var(--quiet); }
";

/// A page with `title`, and `main` as HTML that is already escaped.
pub fn page(title: &str, main: &str) -> Response {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = BASE64_STANDARD.encode(Sha256::digest(STYLE));
        format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    });
    let title = escape(title);
    let html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} · protocol-bridge</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <nav><b>protocol-bridge</b> <a href=\"/docs\">The API</a> <a href=\"/docs/migration\">Moving from v1</a> <a href=\"/problems\">Problems</a></nav>\n\
         <main>\n{main}</main>\n</body>\n</html>\n"
    );
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY.as_str())], html).into_response()
}

/// Text in HTML.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text in HTML, with what stands in double quotes as code and what is an address of ours as a link.
#[must_use]
pub fn linked(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in text.split('"').enumerate() {
        if index % 2 == 1 {
            html.extend(["<code>", &escape(part), "</code>"]);
            continue;
        }
        let words = part.split(' ').map(|word| {
            let address = word.trim_end_matches(['.', ',', ';', ':']);
            match address {
                "/docs" | "/docs/migration" | "/problems" => format!("<a href=\"{address}\">{address}</a>{}", &word[address.len()..]),
                _ => escape(word),
            }
        });
        html.push_str(&words.collect::<Vec<_>>().join(" "));
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_code_and_our_pages_are_links() {
        assert_eq!(
            linked("Send \"A: <b>\", see /docs/migration."),
            "Send <code>A: &lt;b&gt;</code>, see <a href=\"/docs/migration\">/docs/migration</a>."
        );
    }
}
