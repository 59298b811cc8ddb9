# One image for every role: a peer (default), the demo world, the tools.
# Nothing here needs BuildKit, so older builders do. The base images are named by tag: their digests were
# not known where this was written. Who builds for others pins them: docker buildx imagetools inspect TAG.
FROM golang:1.26-bookworm AS build
LABEL echo-node.stage=build
WORKDIR /src
# The build fetches just the modules that it needs. A layer for all of go.mod's
# would carry the tools' and the tests' as well.
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/usr/local/bin/ ./cmd/echo-node ./cmd/echo-bench \
 && mkdir -p -m 0700 /out/data /out/shared \
 && mkdir -p /out/etc/ssl/certs /out/usr/local/share \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
 && cp "$(go env GOROOT)/lib/time/zoneinfo.zip" /out/usr/local/share/ \
 && cp cmd/echo-node/entrypoint.sh /out/usr/local/bin/echo-entrypoint \
 && chmod 0755 /out/usr/local/bin/echo-entrypoint \
 && go clean -cache

FROM debian:bookworm-slim
COPY --from=build --chown=10001:10001 /out/data /data
COPY --from=build --chown=10001:10001 /out/shared /shared
COPY --from=build /out/etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/usr/local /usr/local
ENV ECHO_API_TOKEN_FILE=/shared/token ZONEINFO=/usr/local/share/zoneinfo.zip
USER 10001:10001
WORKDIR /data
VOLUME ["/data", "/shared"]
EXPOSE 7700 4001/tcp 4001/udp
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=6 CMD ["echo-node", "status"]
ENTRYPOINT ["echo-entrypoint"]
CMD ["run", "--data", "/data", "--api", "0.0.0.0:7700", "--listen", "/ip4/0.0.0.0/udp/4001/quic-v1,/ip4/0.0.0.0/tcp/4001"]
