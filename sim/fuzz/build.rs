//! Writes the random kernels that `tests/lockstep.rs` runs. `BRAID_FUZZ_SEED` and `BRAID_FUZZ_BLOCKS` choose them.

// The library's module, of which the script needs one function.
#[allow(dead_code, unreachable_pub)]
#[path = "src/generate/mod.rs"]
mod generate;

fn number(name: &str, default: u64) -> u64 {
    println!("cargo::rerun-if-env-changed={name}");
    match std::env::var(name) {
        Ok(text) => match text.parse() {
            Ok(value) => value,
            Err(_) => {
                println!("cargo::error={name} is `{text}`, not a number");
                default
            }
        },
        Err(_) => default,
    }
}

fn main() -> std::io::Result<()> {
    let seed = number("BRAID_FUZZ_SEED", generate::DEFAULT_SEED);
    let blocks = number("BRAID_FUZZ_BLOCKS", generate::DEFAULT_BLOCKS);
    println!("cargo::rerun-if-changed=src/generate");
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var_os("OUT_DIR").ok_or_else(|| std::io::Error::other("cargo sets OUT_DIR"))?;
    std::fs::write(std::path::Path::new(&folder).join("kernels.rs"), generate::program(seed, blocks))
}
