//! `AES_ENCRYPT` and `AES_DECRYPT`, in the mode that the session's `block_encryption_mode` names.
//!
//! A key of any length is folded into one of the cipher's: its bytes are combined by XOR, over and over.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptingKey, DecryptionContext, EncryptingKey,
    EncryptionContext, PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;

use super::{Arguments, ScalarFunction, infer};
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::types::{DataType, Value};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("AES_ENCRYPT", (2, 3), infer::bytes, encrypt)
        .with(Arguments::AsText)
        .per_statement(),
    ScalarFunction::new("AES_DECRYPT", (2, 3), infer::bytes, decrypt)
        .with(Arguments::AsText)
        .per_statement(),
];

/// Bytes of an initialization vector: longer ones are cut.
const VECTOR_BYTES: usize = 16;

/// What `block_encryption_mode` says.
struct Mode {
    algorithm: &'static Algorithm,
    key_bytes: usize,
    /// `ecb`, `cbc`, `cfb1`, `cfb8`, `cfb128` or `ofb`.
    chaining: String,
}

impl Mode {
    /// # Errors
    /// 1231 for a mode that is none.
    fn of_session(ctx: &EvalContext<'_>) -> SqlResult<Self> {
        let set = ctx
            .session
            .system_variable("block_encryption_mode", false)?;
        let set = set.to_text().unwrap_or_default().to_ascii_lowercase();
        let known = ["ecb", "cbc", "cfb1", "cfb8", "cfb128", "ofb"];
        let parts: Vec<&str> = set.split('-').collect();
        if let ["aes", bits, chaining] = parts[..]
            && known.contains(&chaining)
        {
            let of = |algorithm, key_bytes| Self {
                algorithm,
                key_bytes,
                chaining: chaining.to_owned(),
            };
            match bits {
                "128" => return Ok(of(&AES_128, 16)),
                "192" => return Ok(of(&AES_192, 24)),
                "256" => return Ok(of(&AES_256, 32)),
                _ => {}
            }
        }
        let message =
            format!("Variable 'block_encryption_mode' can't be set to the value of '{set}'");
        Err(SqlError::new(1231, "42000", message))
    }

    fn key(&self, secret: &[u8]) -> Result<UnboundCipherKey, Unspecified> {
        let mut key = vec![0; self.key_bytes];
        for (at, byte) in secret.iter().enumerate() {
            key[at % self.key_bytes] ^= byte;
        }
        UnboundCipherKey::new(self.algorithm, &key)
    }

    fn encrypt(
        &self,
        secret: &[u8],
        vector: [u8; VECTOR_BYTES],
        mut bytes: Vec<u8>,
    ) -> Result<Vec<u8>, Unspecified> {
        let key = self.key(secret)?;
        let context = EncryptionContext::Iv128(FixedLength::from(vector));
        match self.chaining.as_str() {
            "ecb" => PaddedBlockEncryptingKey::ecb_pkcs7(key)?.encrypt(&mut bytes)?,
            "cbc" => {
                let key = PaddedBlockEncryptingKey::cbc_pkcs7(key)?;
                key.less_safe_encrypt(&mut bytes, context)?
            }
            stream => {
                let key = match stream {
                    "cfb1" => EncryptingKey::cfb1(key)?,
                    "cfb8" => EncryptingKey::cfb8(key)?,
                    "cfb128" => EncryptingKey::cfb128(key)?,
                    _ => EncryptingKey::ofb(key)?,
                };
                key.less_safe_encrypt(&mut bytes, context)?
            }
        };
        Ok(bytes)
    }

    fn decrypt(
        &self,
        secret: &[u8],
        vector: [u8; VECTOR_BYTES],
        mut bytes: Vec<u8>,
    ) -> Result<Vec<u8>, Unspecified> {
        let key = self.key(secret)?;
        let context = DecryptionContext::Iv128(FixedLength::from(vector));
        let plain = match self.chaining.as_str() {
            "ecb" => PaddedBlockDecryptingKey::ecb_pkcs7(key)?
                .decrypt(&mut bytes, DecryptionContext::None)?,
            "cbc" => PaddedBlockDecryptingKey::cbc_pkcs7(key)?.decrypt(&mut bytes, context)?,
            stream => {
                let key = match stream {
                    "cfb1" => DecryptingKey::cfb1(key)?,
                    "cfb8" => DecryptingKey::cfb8(key)?,
                    "cfb128" => DecryptingKey::cfb128(key)?,
                    _ => DecryptingKey::ofb(key)?,
                };
                key.decrypt(&mut bytes, context)?
            }
        };
        Ok(plain.to_vec())
    }

    /// The initialization vector among the arguments; `None` when it is NULL.
    ///
    /// # Errors
    /// 1582 when a mode that needs one has none, 1882 for one that is too short.
    fn vector(
        &self,
        ctx: &EvalContext<'_>,
        function: &str,
        args: &[Value],
    ) -> SqlResult<Option<[u8; VECTOR_BYTES]>> {
        let given = args.get(2);
        if self.chaining == "ecb" {
            if given.is_some() {
                ctx.warn(1618, "<IV> option ignored");
            }
            return Ok(Some([0; VECTOR_BYTES]));
        }
        let Some(given) = given else {
            let message =
                format!("Incorrect parameter count in the call to native function '{function}'");
            return Err(SqlError::new(1582, "42000", message));
        };
        let Some(bytes) = given.to_bytes() else {
            return Ok(None);
        };
        let first = bytes.get(..VECTOR_BYTES);
        let first = first.and_then(|first| <[u8; VECTOR_BYTES]>::try_from(first).ok());
        first.map(Some).ok_or_else(|| {
            let message = format!(
                "The initialization vector supplied to {function} is too short. Must be at least \
                 {VECTOR_BYTES} bytes long"
            );
            SqlError::new(1882, "HY000", message)
        })
    }
}

/// One direction of a [`Mode`]: of a key, an initialization vector and bytes.
type Direction = fn(&Mode, &[u8], [u8; VECTOR_BYTES], Vec<u8>) -> Result<Vec<u8>, Unspecified>;

fn encrypt(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    work(ctx, "aes_encrypt", args, Mode::encrypt)
}

fn decrypt(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    work(ctx, "aes_decrypt", args, Mode::decrypt)
}

/// NULL of NULL, and for bytes that are not the work of `AES_ENCRYPT` with this key.
fn work(
    ctx: &EvalContext<'_>,
    function: &str,
    args: &[Value],
    direction: Direction,
) -> SqlResult<Value> {
    let mode = Mode::of_session(ctx)?;
    let vector = mode.vector(ctx, function, args)?;
    let (Some(bytes), Some(key), Some(vector)) = (args[0].to_bytes(), args[1].to_bytes(), vector)
    else {
        return Ok(Value::Null);
    };
    let done = direction(&mode, &key, vector, bytes);
    Ok(done.map_or(Value::Null, Value::Bytes))
}
