//! The same for Java, whose options are RocksDB's own objects: what `nativeHandle` is to
//! `org.rocksdb.Options` and `org.rocksdb.DBOptions`, points to a `rocksdb::DBOptions`. In the C
//! interface a `rocksdb_options_t` begins with one.
#![allow(unsafe_code)] // each block says why it is sound

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use jni_sys::{JNIEnv, jbyteArray, jclass, jlong, jstring};

use crate::c::make;
use crate::loaded::Loaded;

/// `private static native String install(long options, byte[] configuration)` of the class
/// `manxdb.Compaction`: what is wrong, or null.
///
/// # Safety
/// Java calls it: the objects are its own, and `options` is the handle of living options.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_manxdb_Compaction_install(
    env: *mut JNIEnv,
    _: jclass,
    options: jlong,
    configuration: jbyteArray,
) -> jstring {
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: Java's objects, as the caller promises.
        let text = unsafe { text_of(env, configuration) };
        install(options, &text)
    }));
    let why = match done {
        Ok(Ok(())) => return ptr::null_mut(),
        Ok(Err(why)) => why,
        Err(_) => "making the service failed".to_owned(),
    };
    // Java reads a form of UTF-8 of its own, which is ASCII for ASCII.
    let why: String = why
        .chars()
        .map(|one| if one.is_ascii() { one } else { '?' })
        .collect();
    let why = CString::new(why.replace('\0', " ")).unwrap_or_default();
    // SAFETY: Java's own table of functions; the text lives through the call.
    unsafe { ((**env).v1_1.NewStringUTF)(env, why.as_ptr()) }
}

fn install(options: jlong, configuration: &str) -> Result<(), String> {
    let handle = usize::try_from(options.cast_unsigned())
        .map_err(|_| format!("{options:x} is no handle of options"))?;
    let rocksdb = Loaded::find()?;
    let service = make(configuration, &rocksdb)?;
    // SAFETY: `options` are living options, as the caller of `Java_…` promises; they take the
    // service over.
    unsafe { (rocksdb.set)(ptr::with_exposed_provenance_mut(handle), service) };
    Ok(())
}

/// # Safety
/// `env` and `bytes` are Java's.
unsafe fn text_of(env: *mut JNIEnv, bytes: jbyteArray) -> String {
    // SAFETY: as the caller promises; the buffer is as long as what is copied into it.
    unsafe {
        let functions = &(**env).v1_1;
        let length = (functions.GetArrayLength)(env, bytes);
        let mut buffer = vec![0_u8; usize::try_from(length).unwrap_or(0)];
        (functions.GetByteArrayRegion)(env, bytes, 0, length, buffer.as_mut_ptr().cast());
        String::from_utf8_lossy(&buffer).into_owned()
    }
}
