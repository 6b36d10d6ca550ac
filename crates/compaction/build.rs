//! Compiles the definitions of the protocol, without protoc.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let definitions = protox::compile(["proto/pool.proto"], ["proto"])?;
    println!("cargo:rerun-if-changed=proto");
    tonic_prost_build::configure()
        .generate_default_stubs(false)
        .compile_fds(definitions)?;
    Ok(())
}
