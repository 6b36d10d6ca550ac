//! With the feature `libfabric`: compiles the shim, and finds the library that it calls.

#[cfg(not(feature = "libfabric"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

#[cfg(feature = "libfabric")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    const SHIM: &str = "src/libfabric/shim.c";
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SHIM}");
    let found = pkg_config::Config::new()
        .atleast_version("1.14")
        .cargo_metadata(false) // what is linked comes behind the shim, which needs it
        .probe("libfabric");
    let library = found.unwrap_or_else(|error| {
        eprintln!(
            "the feature `libfabric` needs the library and its headers \
             (Debian and Ubuntu: apt-get install libfabric-dev)\n{error}"
        );
        std::process::exit(1);
    });
    cc::Build::new()
        .file(SHIM)
        .includes(&library.include_paths)
        .std("gnu11")
        .warnings_into_errors(true)
        .try_compile("manxdb_libfabric_shim")?;
    for path in &library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for name in &library.libs {
        println!("cargo:rustc-link-lib={name}");
    }
    Ok(())
}
