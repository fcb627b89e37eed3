//! A user's mistakes: one line on standard error, status 2, and no output file touched.

use std::path::Path;

use assert_cmd::Command;
use safetensors::Dtype;
use safetensors::tensor::TensorView;

fn braid() -> Command {
    Command::new(env!("CARGO_BIN_EXE_braid"))
}

/// A safetensors file of zeros.
fn file(folder: &Path, tensors: &[(&str, Dtype, &[usize])]) -> std::path::PathBuf {
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|(_, t, shape)| vec![0; shape.iter().product::<usize>() * t.bitsize() / 8]).collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, t, shape), data)| (*name, TensorView::new(*t, shape.to_vec(), data).expect("bytes of the shape")));
    let path = folder.join("in.safetensors");
    std::fs::write(&path, safetensors::serialize(views, None).expect("valid tensors")).expect("a writable folder");
    path
}

/// Runs `attend` on a file; the error line. The output, which existed, must be as it was.
fn refused(input: &Path) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out.safetensors");
    std::fs::write(&output, "kept").expect("a writable folder");
    let result = braid().arg("attend").arg(input).arg(&output).args(["--engine", "golden"]).assert().code(2).stdout("");
    assert_eq!(std::fs::read_to_string(&output).expect("still there"), "kept");
    let text = String::from_utf8_lossy(&result.get_output().stderr).trim().to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn files_that_make_no_sense_are_named_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let q: (&str, Dtype, &[usize]) = ("q", Dtype::F16, &[2, 3, 16]);
    let k: (&str, Dtype, &[usize]) = ("k", Dtype::F32, &[5, 1, 16]);
    let v: (&str, Dtype, &[usize]) = ("v", Dtype::BF16, &[5, 1, 16]);
    assert!(refused(&folder.join("absent")).contains("cannot read"));
    std::fs::write(folder.join("noise"), "not tensors").expect("a writable folder");
    assert!(refused(&folder.join("noise")).contains("is not a safetensors file"));
    assert!(refused(&file(folder, &[q, k])).contains("no tensor 'v'"));
    assert!(refused(&file(folder, &[("q", Dtype::I32, &[2, 3, 16]), k, v])).contains("type I32"));
    assert!(refused(&file(folder, &[("q", Dtype::F16, &[2, 48]), k, v])).contains("three dimensions"));
    assert!(refused(&file(folder, &[("q", Dtype::F16, &[2, 3, 8]), k, v])).contains("q has d = 8 but k has d = 16"));
    assert!(refused(&file(folder, &[q, k, ("v", Dtype::F32, &[6, 1, 16])])).contains("same shape"));
    assert!(refused(&file(folder, &[q, ("k", Dtype::F32, &[5, 2, 16]), ("v", Dtype::F32, &[5, 2, 16])])).contains("3 query heads"));
    assert!(refused(&file(folder, &[q, k, v, ("ranges", Dtype::I32, &[3, 1, 2])])).contains("3 rows"));
    assert!(refused(&file(folder, &[q, k, v, ("ranges", Dtype::F32, &[2, 1, 2])])).contains("I32 is needed"));
    let huge: &[usize] = &[1, 1, 200];
    assert!(refused(&file(folder, &[("q", Dtype::F16, huge), ("k", Dtype::F16, huge), ("v", Dtype::F16, huge)])).contains("128 columns"));
    let whole = std::fs::read(file(folder, &[q, k, v])).expect("just written");
    std::fs::write(folder.join("short"), &whole[..whole.len() - 7]).expect("a writable folder");
    assert!(refused(&folder.join("short")).contains("is not a safetensors file"));
}

#[test]
fn an_output_that_cannot_be_written_is_told_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let z: &[usize] = &[2, 1, 16];
    let input = file(folder.path(), &[("q", Dtype::F16, z), ("k", Dtype::F16, z), ("v", Dtype::F16, z)]);
    for (output, reason) in
        [(folder.path().join("nowhere").join("out.safetensors"), "there is no folder"), (folder.path().to_path_buf(), "directory")]
    {
        let result = braid().arg("attend").arg(&input).arg(&output).assert().code(2).stdout("");
        let text = String::from_utf8_lossy(&result.get_output().stderr).trim().to_string();
        let start = format!("error: cannot write {}: ", output.display());
        assert!(text.starts_with(&start) && text.contains(reason) && text.lines().count() == 1, "{text}");
    }
    // Nothing is left behind.
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn the_golden_machine_computes_the_whole_fan_out() {
    let result = braid().args(["run", "--engine", "golden", "--json"]).assert().success();
    let json: serde_json::Value = serde_json::from_slice(&result.get_output().stdout).expect("one JSON object");
    assert_eq!(json["bit_exact"], true);
    assert_eq!(json["rows"], 546);
    assert_eq!(json["reduce_rounds"], 5);
}

#[test]
fn the_rtl_computes_a_small_fan_out() {
    let options = ["run", "--preset", "tiny", "--agents", "2", "--tokens", "1", "--prefix", "20", "--head-dim", "16", "--json"];
    let result = braid().args(options).assert().success();
    let json: serde_json::Value = serde_json::from_slice(&result.get_output().stdout).expect("one JSON object");
    assert_eq!(json["bit_exact"], true);
    let phases = json["phases"].as_object().expect("an object").values().filter_map(serde_json::Value::as_u64).sum::<u64>();
    assert_eq!(json["cycles"], phases, "the phases divide the cycles");
}

#[test]
fn a_command_list_is_printed_and_noise_is_refused() {
    braid().args(["disasm", "-"]).write_stdin([0u8; 16]).assert().code(1);
    braid().args(["disasm", "-"]).write_stdin([0u8; 7]).assert().code(2);
}
