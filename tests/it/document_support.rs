//! What the tests of documents share: a sample through the whole way from agenda to PDF, and Debian's tools to look at the result.

use base64::Engine as _;
use protocol_bridge::{
    domain::{
        agenda::{Agenda, File, Language},
        protocol::Format,
    },
    generator::{
        document::{Annex, DocumentModel, Role, mark_missing},
        renderer::{MODEL_FILE, Rendered},
        renderer_in_process::render_to,
    },
};
use sha2::{Digest as _, Sha256};
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

pub fn sample(agenda_id: &str) -> Agenda {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("samples/agendas/{agenda_id}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a document is made from: the renderer's input folder, in a folder of its own, and the model in it.
pub struct Draft {
    pub folder: tempfile::TempDir,
    pub model: DocumentModel,
}

impl Draft {
    /// Renders one more format; the file.
    pub fn render(&self, format: Format) -> PathBuf {
        render(self.folder.path(), format).path
    }
}

/// A PDF in a folder of its own, with the model that it was made from.
pub struct Made {
    pub folder: tempfile::TempDir,
    pub pdf: PathBuf,
    pub model: DocumentModel,
    pub pages: u32,
}

impl Made {
    /// Renders one more format; the file.
    pub fn render(&self, format: Format) -> PathBuf {
        render(self.folder.path(), format).path
    }

    /// The text as a reader gets it, in reading order.
    pub fn text(&self) -> String {
        run("pdftotext", &["-raw", "-enc", "UTF-8", self.pdf.to_str().unwrap(), "-"])
    }
}

fn render(folder: &Path, format: Format) -> Rendered {
    let mut rendered = render_to(&folder.join("in"), &folder.join("out"), &[format]).unwrap_or_else(|error| panic!("{format}: {error}"));
    rendered.remove(0)
}

/// An agenda to its PDF, the way the generator goes: mark what cannot be printed, build, render from a folder into a folder.
pub fn make(agenda: &Agenda, language: Language) -> Made {
    let Draft { folder, model } = draft(agenda, language);
    let Rendered { path, pages, .. } = render(folder.path(), Format::Pdf);
    Made { folder, pdf: path, model, pages: pages.unwrap() }
}

/// As [`make`], up to the renderer.
pub fn draft(agenda: &Agenda, language: Language) -> Draft {
    let mut agenda = agenda.clone();
    mark_missing(&mut agenda, "");
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::create_dir(&input).unwrap();
    fs::create_dir(&output).unwrap();
    let mut annexes = Vec::new();
    for question in &agenda.questions {
        let files =
            question.report.iter().map(|file| (Role::Report, file)).chain(question.attachments.iter().map(|file| (Role::Attachment, file)));
        for (role, file) in files {
            annexes.extend(annex(&input, annexes.len(), &question.id, role, file));
        }
    }
    let mut snapshot = agenda.clone();
    for question in &mut snapshot.questions {
        question.report.iter_mut().chain(&mut question.attachments).for_each(|file| file.base64 = None);
    }
    let bytes = serde_json::to_vec_pretty(&snapshot).unwrap();
    fs::write(input.join("snapshot.json"), &bytes).unwrap();
    annexes.push(Annex {
        question: None,
        role: Role::Snapshot,
        name: "agenda.json".to_owned(),
        media_type: "application/json".to_owned(),
        bytes: bytes.len() as u64,
        sha256: sha256(&bytes),
        path: "snapshot.json".to_owned(),
    });
    let model = DocumentModel::build(&agenda, agenda.number.as_deref().unwrap_or("16"), language, &annexes);
    fs::write(input.join(MODEL_FILE), serde_json::to_vec(&model).unwrap()).unwrap();
    Draft { folder, model }
}

fn annex(input: &Path, at: usize, question: &str, role: Role, file: &File) -> Option<Annex> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(file.base64.as_ref()?).unwrap();
    let path = format!("file-{at}");
    fs::write(input.join(&path), &bytes).unwrap();
    Some(Annex {
        question: Some(question.to_owned()),
        role,
        name: file.name.clone().unwrap_or_default(),
        media_type: file.media_type.clone(),
        bytes: bytes.len() as u64,
        sha256: sha256(&bytes),
        path,
    })
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// Runs a tool of Debian's (scripts/tools.sh lists them) and gives its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program} is needed by this test (scripts/tools.sh names its package): {error}"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Without white space and soft hyphens: what is left is what was written.
pub fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '\u{ad}').collect()
}
