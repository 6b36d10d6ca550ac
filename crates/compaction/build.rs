//! Compiles the definitions of the protocol and of etcd's API, without protoc.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let definitions = protox::compile(["proto/pool.proto", "proto/etcd.proto"], ["proto"])?;
    println!("cargo:rerun-if-changed=proto");
    tonic_prost_build::configure()
        .generate_default_stubs(false)
        .compile_fds(definitions)?;
    Ok(())
}
