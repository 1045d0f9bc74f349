//! One file: where it comes from, and what can go wrong on the way.

use super::{
    FileRoom,
    compare::{self, Wrong},
    wanted::Wanted,
};
use crate::{
    base::chain::chain,
    domain::{agenda::Language, failure::Fault},
    generator::{
        Halt, compute,
        documents::Stored,
        source::{Address, LinkError, Opened, OpenedFile, agenda_source::is_url},
        words::{Words, short},
    },
};
use base64::Engine as _;
use futures::StreamExt as _;
use std::io;

/// What came of one file.
#[derive(Debug)]
pub(super) enum Outcome {
    /// In the store, with its holder's ETag.
    Stored(Stored, Option<String>),
    /// It still is what was stored before.
    Unchanged,
    /// The agenda or the file must be corrected.
    Wrong(Fault),
    /// Over the limit for files.
    TooLarge(Fault),
    /// Not followed, and the protocol does without.
    LeftOut(Fault),
    /// It may be had another time.
    Unavailable(Unavailable),
}

#[derive(Debug)]
pub(super) struct Unavailable {
    pub fault: Fault,
    /// Its holder is down or slow, so that others from there are not worth their time-outs now.
    pub is_down: bool,
}

const WITHOUT_CONTENT: Words = Words {
    ru: "У файла нет ни адреса (href), ни содержимого (base64). Укажите одно из двух.",
    en: "The file has neither an address (href) nor content (base64). Give one of them.",
    de: "Die Datei hat weder eine Adresse (href) noch einen Inhalt (base64). Geben Sie eines davon an.",
};
const NOT_BASE64: Words = Words {
    ru: "Содержимое файла «{name}» — не base64. Закодируйте его заново.",
    en: "The content of the file “{name}” is not base64. Encode it again.",
    de: "Der Inhalt der Datei „{name}“ ist kein Base64. Kodieren Sie ihn neu.",
};
const NOT_FOLLOWED: Words = Words {
    ru: "Файл «{name}» не может быть взят: {reason}. Разместите его рядом с повесткой или разрешите узел в agenda.allowed_hosts.",
    en: "The file “{name}” may not be fetched: {reason}. Put it beside the agenda, or allow the host in agenda.allowed_hosts.",
    de: "Die Datei „{name}“ darf nicht geholt werden: {reason}. Legen Sie sie neben die Tagesordnung, oder erlauben Sie den Host in agenda.allowed_hosts.",
};
const TOO_LARGE: Words = Words {
    ru: "Файл «{name}» больше допустимого: generator.max_report_size — {limit} байт. Уменьшите файл или измените предел.",
    en: "The file “{name}” is too large: generator.max_report_size is {limit} bytes. Make it smaller, or raise the limit.",
    de: "Die Datei „{name}“ ist zu groß: generator.max_report_size ist {limit} Byte. Verkleinern Sie sie, oder erhöhen Sie die Grenze.",
};
const MISSING: Words = Words {
    ru: "Файла «{name}» нет: {reason}. Загрузите его или исправьте адрес.",
    en: "The file “{name}” is not there: {reason}. Put it there, or correct its address.",
    de: "Die Datei „{name}“ ist nicht da: {reason}. Legen Sie sie ab, oder berichtigen Sie die Adresse.",
};
const UNAVAILABLE: Words = Words {
    ru: "Файл «{name}» не получен: {reason}. Попробуйте позже.",
    en: "The file “{name}” could not be had: {reason}. Try again later.",
    de: "Die Datei „{name}“ war nicht zu bekommen: {reason}. Versuchen Sie es später.",
};
const TOO_SLOW: Words = Words {
    ru: "Файл «{name}» не пришёл за отведённое время (agenda.timeout).",
    en: "The file “{name}” did not arrive within its time (agenda.timeout).",
    de: "Die Datei „{name}“ kam nicht in der vorgesehenen Zeit an (agenda.timeout).",
};
const TRUNCATED: Words = Words {
    ru: "Файл «{name}» пришёл не полностью: передача оборвалась.",
    en: "The file “{name}” arrived in part only: the transfer broke off.",
    de: "Die Datei „{name}“ kam nur teilweise an: die Übertragung brach ab.",
};

/// Gets a file into the store; `etag` names what is there already.
pub(super) async fn fetch(
    wanted: &Wanted,
    etag: Option<&str>,
    address: &Address,
    room: FileRoom<'_>,
    language: Language,
) -> Result<Outcome, Halt> {
    let (file, name) = (&wanted.file, wanted.name());
    let fault = |code: &str, detail: String| Fault { code: code.to_owned(), pointer: wanted.pointer.clone(), detail };
    let said = |code: &str, words: &Words, reason: &str| fault(code, words.say(language, &[("name", &short(&name)), ("reason", reason)]));
    let limit = room.settings.max_report_bytes;
    let too_large = || {
        let detail = TOO_LARGE.say(language, &[("name", &short(&name)), ("limit", &limit.to_string())]);
        Ok(Outcome::TooLarge(fault("report-too-large", detail)))
    };
    let wrong = |wrong: Wrong| Outcome::Wrong(fault(wrong.code, wrong.detail));
    if file.bytes.is_some_and(|bytes| bytes > limit) {
        return too_large();
    }
    if let Some(content) = &file.base64 {
        let content = content.clone();
        let decoded = compute(move || {
            let content: String = content.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            base64::engine::general_purpose::STANDARD.decode(content)
        });
        let Ok(content) = decoded.await else {
            return Ok(Outcome::Wrong(said("report-altered", &NOT_BASE64, "")));
        };
        if content.len() as u64 > limit {
            return too_large();
        }
        let stored = room.store.put(content.into()).await?;
        return Ok(compare::content(&stored, file, &name, language).map_or(Outcome::Stored(stored, None), wrong));
    }
    let Some(href) = &file.href else {
        return Ok(Outcome::Wrong(fault("file-without-content", WITHOUT_CONTENT.text(language).to_owned())));
    };
    let unavailable = |fault: Fault, is_down: bool| Ok(Outcome::Unavailable(Unavailable { fault, is_down }));
    let opened = match room.source.open_file(address, href, etag, room.outside).await {
        Ok(Opened::File(opened)) => opened,
        Ok(Opened::Unchanged) => return Ok(Outcome::Unchanged),
        Err(LinkError::Missing(reason)) => return unavailable(said("report-not-found", &MISSING, &reason), false),
        Err(LinkError::Unavailable(reason)) => return unavailable(said("report-unavailable", &UNAVAILABLE, &reason), true),
        Err(LinkError::TooSlow(_)) => return unavailable(said("report-too-slow", &TOO_SLOW, ""), true),
        Err(LinkError::Refused(reason)) => {
            let told = said("file-not-followed", &NOT_FOLLOWED, &reason);
            // A folder's agenda may name files elsewhere, as exports of other systems do; the protocol is made without them.
            let is_elsewhere = matches!(address, Address::Folder) && is_url(href);
            return Ok(if is_elsewhere { Outcome::LeftOut(told) } else { Outcome::Wrong(told) });
        }
    };
    if let Some(found) = compare::media_type(opened.media_type.as_deref(), file, &name, language) {
        return Ok(wrong(found));
    }
    let etag = opened.etag.clone();
    match receive(opened, &name, room).await? {
        Received::Whole(stored) => Ok(compare::content(&stored, file, &name, language).map_or(Outcome::Stored(stored, etag), wrong)),
        Received::OverLimit => too_large(),
        Received::TooSlow => unavailable(said("report-too-slow", &TOO_SLOW, ""), true),
        Received::BrokenOff => unavailable(said("report-truncated", &TRUNCATED, ""), false),
    }
}

enum Received {
    Whole(Stored),
    OverLimit,
    TooSlow,
    BrokenOff,
}

/// Streams a file into the store.
async fn receive(mut opened: OpenedFile, name: &str, room: FileRoom<'_>) -> Result<Received, Halt> {
    let limit = room.settings.max_report_bytes;
    if opened.bytes.is_some_and(|bytes| bytes > limit) {
        return Ok(Received::OverLimit);
    }
    let mut writer = room.store.writer().await?;
    while let Some(piece) = opened.content.next().await {
        match piece {
            Ok(piece) => writer.write(&piece).await?,
            Err(error) => {
                tracing::info!(file = name, error = chain(&error), "a file broke off");
                return Ok(if error.kind() == io::ErrorKind::TimedOut { Received::TooSlow } else { Received::BrokenOff });
            }
        }
        if writer.bytes() > limit {
            return Ok(Received::OverLimit);
        }
    }
    Ok(Received::Whole(writer.finish().await?))
}
