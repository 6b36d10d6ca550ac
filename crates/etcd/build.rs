//! Compiles the definitions of etcd's API, without protoc.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let definitions = protox::compile(["proto/etcd.proto"], ["proto"])?;
    println!("cargo:rerun-if-changed=proto");
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(definitions)?;
    Ok(())
}
