//! `braid export`.

use std::io::Write;
use std::path::Path;

use braid_devices::{OpenError, verilog};
use braid_sim::verilog::{Language, Options, package};
use serde::Serialize;

use crate::arguments::{ExportOptions, LanguageName};
use crate::error::Error;
use crate::{input, output};

/// What was written.
#[derive(Serialize)]
struct Summary {
    /// Preset.
    preset: &'static str,
    /// Path of the exported block, empty for the SIP.
    block: String,
    /// Name of the top module.
    top: String,
    /// Folder.
    out: String,
    /// Distinct modules.
    modules: usize,
    /// Block instances that they stand for, registers and memories included.
    instances: usize,
    /// Cycles in the testbench.
    cycles: usize,
    /// Every file.
    files: Vec<String>,
    /// Bytes of all files.
    bytes: usize,
}

/// Writes the Verilog of a block and what comes with it.
pub(crate) fn export(options: &ExportOptions) -> Result<bool, Error> {
    if !(options.period.is_finite() && options.period > 0.0) {
        return Err(Error::Options("--period must be more than 0 nanoseconds".into()));
    }
    // A folder that cannot be written is told before the work, not after it.
    std::fs::create_dir_all(&options.out).map_err(|error| output::write_error(&options.out, error))?;
    drop(output::beside(&options.out.join("modules"))?);
    let geometry = options.preset.geometry();
    let whole = verilog::lower(&geometry)?;
    let block = whole.block(&options.block).map_err(OpenError::from)?;
    let mut text = Options::for_tool(options.tool.tool());
    if options.language == LanguageName::Systemverilog {
        text = text.language(Language::SystemVerilog);
    }
    text.style.module_prefix = "braid_".into();
    text.style.top = name(&options.block);
    let export = block.verilog(&text).map_err(OpenError::from)?;
    let recording = match options.cycles {
        0 => None,
        cycles => Some(verilog::record(&whole, geometry, &options.block, &export, &input::small()?, cycles)?),
    };
    let mut files: Vec<(String, String)> = export.files.iter().map(|f| (f.name.clone(), f.text.clone())).collect();
    files.extend(package::files(&export, recording.as_ref(), options.period).into_iter().map(|f| (f.name, f.text)));
    for (name, text) in &files {
        write(&options.out.join(name), text)?;
    }
    let summary = Summary {
        preset: geometry.name,
        block: options.block.clone(),
        top: export.top.clone(),
        out: options.out.display().to_string(),
        modules: export.files.len(),
        instances: block.instance_count,
        cycles: recording.as_ref().map_or(0, braid_sim::verilog::Recording::cycles),
        bytes: files.iter().map(|f| f.1.len()).sum(),
        files: files.into_iter().map(|f| f.0).collect(),
    };
    if options.json {
        println!("{}", serde_json::to_string(&summary).expect("a summary of numbers and strings is JSON"));
    } else {
        let Summary { top, out, modules, instances, cycles, bytes, files, .. } = &summary;
        println!("{top}: {modules} modules for {instances} blocks, testbench of {cycles} cycles");
        println!("{} files, {bytes} bytes in {out}:", files.len());
        files.iter().for_each(|f| println!("  {f}"));
    }
    Ok(true)
}

/// Name of the top module: the block's own, without its index.
fn name(path: &str) -> String {
    let last = path.replace('[', "$").rsplit('.').next().and_then(|l| l.split('$').next().map(str::to_string));
    last.filter(|l| !l.is_empty()).unwrap_or_else(|| "sip".into())
}

/// Writes a file, all or nothing.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let mut file = output::beside(path)?;
    file.write_all(text.as_bytes()).map_err(|error| output::write_error(path, error))?;
    output::persist(file, path)
}
