//! Documents: whole, in part, unchanged, and with a name that does no harm.

use crate::support::{Service, TestDatabase, on_both_databases};
use protocol_bridge::generator::documents::hex;
use sha2::{Digest as _, Sha256};

on_both_databases! {
    async fn a_document_is_served_whole_in_part_or_not_again(database: TestDatabase) {
        let service = Service::start(database).await;
        service.agendas.retitle("Протокол «№ 1/2»; \"х\" %41 \u{202E}");
        let protocol = service.protocol_of("5").await;
        let pdf = protocol["documents"].as_array().unwrap().iter().find(|document| document["format"] == "pdf").expect("a PDF");
        let (url, sha256) = (pdf["url"].as_str().unwrap(), pdf["sha256"].as_str().unwrap());
        let whole = service.get(url).send().await.unwrap();
        assert_eq!(whole.status(), 200);
        assert_eq!(whole.headers()["etag"].to_str().unwrap(), format!("\"{sha256}\""));
        assert_eq!(whole.headers()["x-content-type-options"], "nosniff");
        assert_eq!(whole.headers()["content-type"], "application/pdf");
        let disposition = whole.headers()["content-disposition"].to_str().expect("pure ASCII").to_owned();
        assert!(disposition.contains("Protokol") && disposition.contains("filename*=UTF-8''") && disposition.trim_end().strip_suffix(".pdf").is_some(), "{disposition}");
        let bytes = whole.bytes().await.unwrap();
        assert_eq!(bytes.len() as u64, pdf["bytes"].as_u64().unwrap());
        assert_eq!(hex(&Sha256::digest(&bytes)), sha256);

        let again = service.get(url).header("if-none-match", format!("\"{sha256}\"")).send().await.unwrap();
        assert_eq!((again.status().as_u16(), again.bytes().await.unwrap().len()), (304, 0));
        let part = service.get(url).header("range", "bytes=5-9").send().await.unwrap();
        assert_eq!(part.status(), 206);
        assert_eq!(part.headers()["content-range"].to_str().unwrap(), format!("bytes 5-9/{}", bytes.len()));
        assert_eq!(part.bytes().await.unwrap(), bytes.slice(5..10));
        let other = service.get(url).header("range", "bytes=5-9").header("if-range", "\"other\"").send().await.unwrap();
        assert_eq!(other.status(), 200);
        let beyond = service.get(url).header("range", "bytes=99999999-").send().await.unwrap();
        assert_eq!(beyond.status(), 416);
        assert_eq!(beyond.headers()["content-range"].to_str().unwrap(), format!("bytes */{}", bytes.len()));
        let head = service.request(reqwest::Method::HEAD, url).send().await.unwrap();
        assert_eq!((head.status().as_u16(), head.headers()["content-length"].to_str().unwrap()), (200, bytes.len().to_string().as_str()));

        let part = service.request(reqwest::Method::HEAD, url).header("range", "bytes=5-9").send().await.unwrap();
        assert_eq!((part.status().as_u16(), part.headers()["content-length"].to_str().unwrap()), (200, bytes.len().to_string().as_str()), "a range is for GET alone");
        let beyond = service.request(reqwest::Method::HEAD, url).header("range", "bytes=99999999-").send().await.unwrap();
        assert_eq!(beyond.status(), 200);

        let json = service.get(&url.replace(".pdf", ".json")).send().await.unwrap();
        assert_eq!(json.headers()["content-type"], "application/json");
        assert!(json.json::<serde_json::Value>().await.unwrap().is_object());
    }
}

on_both_databases! {
    async fn every_format_is_listed_and_served_as_what_it_is(database: TestDatabase) {
        let service = Service::start(database).await;
        let protocol = service.protocol_of("5").await;
        let documents = protocol["documents"].as_array().unwrap();
        let formats: Vec<&str> = documents.iter().map(|document| document["format"].as_str().unwrap()).collect();
        assert_eq!(formats, ["pdf", "docx", "html", "json"]);
        for (document, (media_type, start)) in documents.iter().zip([
            ("application/pdf", b"%PDF-".as_slice()),
            ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", b"PK\x03\x04"),
            ("text/html; charset=utf-8", b"<!DOCTYPE html>"),
            ("application/json", b"{"),
        ]) {
            let answer = service.get(document["url"].as_str().unwrap()).send().await.unwrap();
            let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(header("content-type").as_deref(), Some(media_type));
            assert_eq!(header("x-content-type-options").as_deref(), Some("nosniff"));
            let disposition = header("content-disposition").unwrap();
            let extension = document["format"].as_str().unwrap();
            assert!(disposition.ends_with(&format!(".{extension}")) && disposition.contains(&format!(".{extension}\"")), "{disposition}");
            assert_eq!(header("content-security-policy").as_deref() == Some("sandbox"), extension == "html");
            let bytes = answer.bytes().await.unwrap();
            assert_eq!(document["bytes"].as_u64(), Some(bytes.len() as u64));
            assert_eq!(document["sha256"], hex(&Sha256::digest(&bytes)));
            assert!(bytes.starts_with(start), "{extension}");
        }
    }
}

/// Case T-11: what `curl -OJ` makes of the header: a file in this folder, under a name that does no harm.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_saved_under_a_sane_name() {
    let service = Service::start(TestDatabase::sqlite().await).await;
    let titles = [
        "Протокол з".to_owned(),
        format!("Протокол {}", "я".repeat(34)),
        format!("Протокол {}", "я".repeat(35)),
        "щ".repeat(120),
        "Щ".repeat(300),
        "x".repeat(290),
        "a\r\nX-Evil: 1".to_owned(),
        "a\"b\\c/d;e %41 ../..".to_owned(),
        "gpj\u{202E}fdp.exe 😀.".to_owned(),
        "CON".to_owned(),
    ];
    for (n, title) in titles.iter().enumerate() {
        service.agendas.retitle(title);
        let protocol = service.protocol_of(&format!("t11-{n}")).await;
        let url = format!("http://{}/protocol/{}/document.pdf", service.address, protocol["protocolId"].as_str().unwrap());
        let headers = service.request(reqwest::Method::HEAD, protocol["documents"][0]["url"].as_str().unwrap()).send().await.unwrap();
        assert!(!headers.headers().contains_key("x-evil"), "{title:?}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let output = tokio::task::spawn_blocking(move || {
            std::process::Command::new("curl").args(["-sS", "-f", "-O", "-J", &url]).current_dir(path).output()
        });
        let output = output.await.unwrap().expect("curl runs");
        assert!(output.status.success(), "{title:?}: {}", String::from_utf8_lossy(&output.stderr));
        let names: Vec<String> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().expect("UTF-8")).collect();
        let [name] = names.as_slice() else { panic!("{title:?}: {names:?}") };
        assert!(name.strip_suffix(".pdf").is_some() && name.len() <= 255 && name.is_ascii(), "{title:?} became {name:?}");
        assert!(!name.starts_with('.') && !name.contains(['/', '\\', '"', ';', '%']), "{title:?} became {name:?}");
        assert!(std::fs::read(folder.path().join(name)).unwrap().starts_with(b"%PDF-"));
    }
}
