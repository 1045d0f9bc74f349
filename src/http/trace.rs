//! The caller's trace, as its headers say it (W3C Trace Context).

use crate::domain::trace::TraceContext;
use axum::http::HeaderMap;

/// The place that `traceparent` names; two of them, or one that is invalid, are ignored, as the standard says.
#[must_use]
pub fn of(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let (parent, None) = (parents.next()?, parents.next()) else { return None };
    let place: TraceContext = parent.to_str().ok()?.parse().ok()?;
    // A list that came in several lines is one list.
    let states: Vec<&str> = headers.get_all("tracestate").iter().filter_map(|state| state.to_str().ok()).collect();
    Some(place.with_state(Some(&states.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn one_valid_parent_counts_with_all_its_state() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let headers = |parents: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for parent in parents {
                headers.append("traceparent", HeaderValue::from_static(parent));
            }
            headers.append("tracestate", HeaderValue::from_static("a=1"));
            headers.append("tracestate", HeaderValue::from_static("b=2"));
            headers
        };
        let place = of(&headers(&[good])).expect("a place");
        assert_eq!((place.parent(), place.state()), (good, Some("a=1,b=2")));
        for bad in [&[][..], &[good, good], &["00-xyz"]] {
            assert_eq!(of(&headers(bad)), None, "{bad:?}");
        }
    }
}
