# One image for the API, the workers and the migration (docker-compose.yml, operations/kubernetes). What only builds stays
# in the first stage.
FROM node:26-slim AS build
WORKDIR /app
# A package below swagger-ui-dist tells a server of each installation.
ENV SCARF_ANALYTICS=false
COPY package.json package-lock.json .npmrc ./
COPY patches patches/
COPY local/patches.mjs local/
RUN npm ci --omit=dev && node local/patches.mjs
COPY . .
# Nobody can write to the image later: all programs are compiled, and the page is built, now.
RUN node local/run.mjs --compile

FROM node:26-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git perl \
 && rm -rf /var/lib/apt/lists/*
# /workspace: the folder of the conversations that run on this host. /data: what a process may lose.
RUN mkdir /workspace /data && chown node:node /workspace /data
COPY --from=build /app /app
WORKDIR /app
ENV NODE_ENV=production DATA_DIR=/data
USER node
VOLUME /workspace
EXPOSE 3000
CMD ["node", "local/run.mjs", "api/main.ts"]
