//! Files that the program writes: all or nothing.

use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::Error;

/// A temporary file in the folder of `path`, which takes its place by [`persist`].
///
/// # Errors
/// [`Error::Write`], naming `path`, if it is a folder or its folder takes no new file.
pub(crate) fn beside(path: &Path) -> Result<NamedTempFile, Error> {
    if path.is_dir() {
        return Err(write_error(path, io::ErrorKind::IsADirectory.into()));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let reason = format!("there is no folder {}", folder.display());
        return Err(write_error(path, io::Error::new(io::ErrorKind::NotFound, reason)));
    }
    // The kind alone: tempfile's own text names the temporary file, which means nothing to the user.
    NamedTempFile::new_in(folder).map_err(|error| write_error(path, error.kind().into()))
}

/// Puts a complete temporary file in the place of `path`.
///
/// # Errors
/// [`Error::Write`]; the old file, if there was one, is as it was.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> Result<(), Error> {
    file.as_file().sync_all().map_err(|error| write_error(path, error))?;
    file.persist(path).map_err(|error| write_error(path, error.error))?;
    Ok(())
}

/// The error of writing `path`.
pub(crate) fn write_error(path: &Path, source: io::Error) -> Error {
    Error::Write { path: path.to_path_buf(), source }
}
