//! Connections: taken in, bounded in number and patience, and ended when the server ends.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::extract::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::gate::Local;
use super::state::wait_for_stop;

/// Connections at once; more wait to be taken in.
const MOST_CONNECTIONS: usize = 256;
/// A client has this long to send the head of a request, and as long between two requests.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 64 << 10;
/// A client that takes nothing of what is sent for this long is given up.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// What runs when the server is told to end has this long to say so.
const LEAVE_TIME: Duration = Duration::from_secs(3);
/// After a connection could not be taken in, for want of file handles say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until told to stop.
pub async fn serve(listener: TcpListener, router: Router, stopping: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut stop = pin!(wait_for_stop(stopping.clone()));
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let (router, stopping) = (router.clone(), stopping.clone());
                connections.spawn(async move {
                    connection(stream, router, stopping).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection could not be taken in");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let _ = timeout(LEAVE_TIME, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
    connections.abort_all();
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

async fn connection(stream: TcpStream, router: Router, stopping: watch::Receiver<bool>) {
    let Ok(local) = stream.local_addr() else { return };
    // Small pieces go out as they are made.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router.layer(Extension(Local::from(local))));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_header_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(Patient::new(stream)), service)
    );
    // A client that broke off or was given up has nobody to tell.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = wait_for_stop(stopping) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

impl From<SocketAddr> for Local {
    fn from(address: SocketAddr) -> Local {
        Local {
            address: address.ip(),
            port: address.port(),
        }
    }
}

/// A connection whose other end may not be slow for ever.
struct Patient {
    stream: TcpStream,
    /// Runs while the other end takes nothing.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream) -> Patient {
        Patient {
            stream,
            patience: None,
        }
    }

    /// Passes on what a write gave, or an error when it gave nothing for too long.
    fn bounded<T>(&mut self, context: &mut Context<'_>, write: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.patience = None;
            return write;
        }
        let patience = self
            .patience
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + WRITE_TIME)));
        ready!(patience.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded(context, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.bounded(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.stream).poll_flush(context);
        self.bounded(context, flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bounded(context, shutdown)
    }
}
