# The API and the worker: the same image, another command (docker-compose.yml).
FROM node:26-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git perl \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
# A package below swagger-ui-dist tells a server of each installation.
ENV SCARF_ANALYTICS=false
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev
COPY . .
ENV NODE_ENV=production
# The containers' user cannot write here: all programs are compiled, and the page is built, now.
RUN node local/run.mjs --compile
# The folder of the conversations that run on this host.
RUN mkdir /workspace && chown node:node /workspace
VOLUME /workspace
USER node
EXPOSE 3000
CMD ["node", "local/run.mjs", "api/main.ts"]
