# The service in a container: `make build`, then `docker build --tag svc .`
# It has no engines such as claude or codex. Build an image from this one and add them.
FROM debian:bookworm-slim

# tini is process 1 and reaps processes that agents leave behind.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends bubblewrap ca-certificates tini \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --uid 10001 --user-group --home-dir /data --no-create-home --shell /usr/sbin/nologin svc \
  && install --directory --owner svc --group svc --mode 0700 /data /files

# dist/svc; for several architectures (PER_MACHINE=yes) dist/amd64/svc and dist/arm64/svc.
ARG TARGETARCH
ARG PER_MACHINE=
COPY --chmod=0755 dist/${PER_MACHINE:+${TARGETARCH}/}svc /usr/local/bin/svc

ENV SVC_DATA_DIR=/data \
  SVC_SERVER__HOST=0.0.0.0
WORKDIR /data
VOLUME /data
USER svc
EXPOSE 8080

# `svc health` requests /readyz, so the image needs no curl and no shell.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["svc", "health"]
ENTRYPOINT ["/usr/bin/tini", "--", "svc"]
CMD ["serve"]
