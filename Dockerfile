# The service in a container: `make build`, then `docker build --tag svc .`
# Engines such as claude or codex are not inside; build an image of your own from this one and add them.
FROM debian:bookworm-slim

# tini is process 1: it reaps what agents leave behind.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates tini \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --uid 10001 --user-group --home-dir /data --no-create-home --shell /usr/sbin/nologin svc \
  && install --directory --owner svc --group svc --mode 0700 /data /files

# dist/svc, or for several kinds of machine at once (PER_MACHINE=yes) dist/amd64/svc and dist/arm64/svc.
ARG TARGETARCH
ARG PER_MACHINE=
COPY --chmod=0755 dist/${PER_MACHINE:+${TARGETARCH}/}svc /usr/local/bin/svc

ENV SVC_DATA_DIR=/data \
  SVC_SERVER__HOST=0.0.0.0
WORKDIR /data
VOLUME /data
USER svc
EXPOSE 8080

# `svc health` asks /readyz by itself: no curl and no shell are needed.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["svc", "health"]
ENTRYPOINT ["/usr/bin/tini", "--", "svc"]
CMD ["serve"]
