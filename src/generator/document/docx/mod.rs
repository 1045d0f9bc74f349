//! The document as DOCX (ISO/IEC 29500, WordprocessingML): for a secretary who finishes it in Word or LibreOffice.
//!
//! [`parts`] fills the templates of the package's parts, [`runs`] writes texts as runs, [`widths`] divides a table's width, [`package`] packs the parts. The same
//! model gives the same bytes: every id is counted from 1 within the document, times are the meeting's or none.

mod package;
mod parts;
mod runs;
mod widths;

pub use package::docx;
