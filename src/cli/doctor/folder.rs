//! Whether something can be written to a folder, told by its permissions and without a try.

use rustix::fs::{Access, access};
use std::path::Path;

/// What stands in the way of writing to `path`, a file or a folder that is there or will be made; `None`: nothing.
pub(super) fn obstacle(path: &Path) -> Option<String> {
    let there = nearest(path)?;
    if there != path && !there.is_dir() {
        return Some(format!("{} cannot be made: {} is no folder", path.display(), there.display()));
    }
    let needed = if there.is_dir() { Access::WRITE_OK | Access::EXEC_OK } else { Access::WRITE_OK };
    let error = access(there, needed).err()?;
    Some(if there == path {
        format!("{} cannot be written to: {error}", path.display())
    } else {
        format!("{} cannot be made in {}: {error}", path.display(), there.display())
    })
}

/// The path, or the closest of those above it that is there.
pub(super) fn nearest(path: &Path) -> Option<&Path> {
    path.ancestors().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path }).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_goes_by_what_is_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        assert_eq!((obstacle(folder.path()), obstacle(&deep), nearest(&deep)), (None, None, Some(folder.path())));
        assert_eq!(nearest(Path::new("made-up")), Some(Path::new(".")));
        let file = folder.path().join("a");
        std::fs::write(&file, "").unwrap();
        assert_eq!(obstacle(&deep), Some(format!("{} cannot be made: {} is no folder", deep.display(), file.display())));
        assert_eq!(obstacle(&file), None);
    }
}
