//! The byte stream of one connection of a MySQL client or to the admin listener: TCP, or TLS over it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use manxdb_sql::session::TlsInfo;
use rustls::{ProtocolVersion, ServerConfig, ServerConnection};

/// A blocking stream with time-outs.
pub struct Transport {
    socket: Socket,
    tls: Option<Box<ServerConnection>>,
}

impl Transport {
    /// A plain stream whose writes fail after `write_timeout` without progress.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn new(socket: Arc<TcpStream>, write_timeout: Duration) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(write_timeout))?;
        // A peer that lost its power or its route is noticed, in hours at most.
        rustix::net::sockopt::set_socket_keepalive(&socket, true)?;
        Ok(Self {
            socket: Socket {
                stream: socket,
                deadline: None,
                read_timeout: None,
                write_timeout,
            },
            tls: None,
        })
    }

    /// The socket below.
    pub fn socket(&self) -> &TcpStream {
        &self.socket.stream
    }

    /// Whether bytes travel encrypted.
    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// What was agreed with the client about encryption.
    pub fn tls_facts(&self) -> Option<TlsInfo> {
        let tls = self.tls.as_ref()?;
        let version = match tls.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "",
        };
        let cipher = tls
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str())
            .unwrap_or_default();
        Some(TlsInfo {
            version: version.to_string(),
            // rustls writes TLS13_AES_…, everybody else TLS_AES_….
            cipher: cipher.replacen("TLS13_", "TLS_", 1),
        })
    }

    /// Bounds all reads from now on together, or no longer.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.socket.deadline = deadline;
    }

    /// Bounds each read from now on.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn set_read_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)
    }

    /// Bounds how long a write may make no progress from now on.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn set_write_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        self.socket.set_write_timeout(timeout)
    }

    /// Speaks TLS from now on. The handshake itself happens within the next read.
    ///
    /// # Errors
    /// The configuration does not allow a server connection.
    pub fn start_tls(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        self.tls = Some(Box::new(connection));
        Ok(())
    }

    /// Tells the peer that nothing more comes.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // The peer may be gone already; there is nobody left to tell.
            let _ = tls.write_tls(&mut self.socket);
        }
        let _ = self.socket.stream.shutdown(Shutdown::Both);
    }
}

impl Read for Transport {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(into),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut self.socket).read(into),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut self.socket).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut self.socket).flush(),
        }
    }
}

/// The socket with its time-outs, below TLS: one read of TLS may be many of the socket, and a
/// peer that sends byte by byte must not stretch the deadline with each. Shared, so that others
/// can shut it down.
struct Socket {
    stream: Arc<TcpStream>,
    /// Every read must be done by then, while the client has not logged in.
    deadline: Option<Instant>,
    read_timeout: Option<Duration>,
    write_timeout: Duration,
}

impl Socket {
    fn set_read_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        // The operating system takes zero for "no time-out".
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        if self.read_timeout != timeout {
            self.stream.set_read_timeout(timeout)?;
            self.read_timeout = timeout;
        }
        Ok(())
    }

    fn set_write_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout = timeout.max(Duration::from_millis(1));
        if self.write_timeout != timeout {
            self.stream.set_write_timeout(Some(timeout))?;
            self.write_timeout = timeout;
        }
        Ok(())
    }

    fn apply_deadline(&mut self) -> io::Result<()> {
        let Some(deadline) = self.deadline else {
            return Ok(());
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.set_read_timeout(left)
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.apply_deadline()?;
        (&*self.stream).read(into)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
