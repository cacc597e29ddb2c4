import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { downloadTemporal } from "../../local/temporal/download.ts";
import { ensureTemporalBinary, type TemporalBinary } from "../../local/temporal/find.ts";
import { platformName, RELEASE } from "../../local/temporal/release.ts";
import { parseServerVersion } from "../../local/temporal/version.ts";
import { script, temporaryFolder } from "./support.ts";

const VERSION = "9.9.9";
const ARCHIVE = `/v${VERSION}/temporal_cli_${VERSION}_${platformName()}.tar.gz`;

const saying = (server: string, from: string) =>
  `echo "temporal version ${from} (Server ${server}, UI 2.0.0)"`;

type Machine = {
  readonly bin: string;
  readonly cached: string;
  find(release?: Partial<Record<string, string>>): Promise<TemporalBinary>;
  readonly news: string[];
};

/** A machine with a PATH, a cache and a download site of its own. */
async function machine(site: RequestListener | null): Promise<Machine> {
  const folder = temporaryFolder();
  const bin = join(folder, "bin");
  mkdirSync(bin);
  // Only the tools that the scripts below need: a temporal or a go of this machine stays hidden.
  for (const tool of ["cat", "chmod"]) symlinkSync(join("/bin", tool), join(bin, tool));
  const cache = join(folder, "cache");
  mkdirSync(join(cache, "bedrock"), { recursive: true });
  const news: string[] = [];
  const env = {
    PATH: bin,
    HOME: folder,
    XDG_CACHE_HOME: cache,
    TEMPORAL_DOWNLOADS: site === null ? "http://127.0.0.1:1" : await serve(site),
  };
  return {
    bin,
    cached: join(cache, "bedrock", `temporal-${VERSION}-${platformName()}`),
    news,
    find: (sha256 = {}) =>
      ensureTemporalBinary({
        env,
        release: { version: VERSION, sha256 },
        onProgress: (sentence) => news.push(sentence),
      }),
  };
}

async function serve(site: RequestListener): Promise<string> {
  const server = createServer(site);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An archive like that of the release: a program and a licence beside it. */
function archive(program = saying("1.32.0", VERSION)): { bytes: Buffer; sha256: Record<string, string> } {
  const folder = temporaryFolder();
  script(join(folder, "temporal"), program);
  writeFileSync(join(folder, "LICENSE"), "MIT");
  execFileSync("tar", ["-czf", "archive.tar.gz", "LICENSE", "temporal"], { cwd: folder });
  const bytes = readFileSync(join(folder, "archive.tar.gz"));
  return { bytes, sha256: { [platformName()]: createHash("sha256").update(bytes).digest("hex") } };
}

const serving =
  (bytes: Buffer): RequestListener =>
  (request, response) => {
    if (request.url === ARCHIVE) response.setHeader("content-length", bytes.length).end(bytes);
    else response.writeHead(404).end();
  };

/** A fake `go` that builds a program and prints the lines of the real one. */
const FAKE_GO = `
if [ "$1" = version ]; then echo "go version go1.26.8 linux/amd64"; exit 0; fi
while [ "$1" != -o ]; do shift; done
echo "go: downloading go.temporal.io/server v1.32.0" >&2
echo "go.temporal.io/server/common" >&2
cat > "$2" <<'END'
#!/bin/sh
${saying("1.32.0", "built")}
END
chmod +x "$2"`;

const BROKEN_GO = `
if [ "$1" = version ]; then echo "go version go1.26.8 linux/amd64"; exit 0; fi
echo "go: downloading go.temporal.io/server v1.32.0" >&2
echo "dial tcp: lookup proxy: no such host" >&2
exit 1`;

describe("the search for a Temporal server", () => {
  test("uses one on PATH before any other", async () => {
    const here = await machine(serving(archive().bytes));
    script(here.cached, saying("1.32.0", "cached"));
    const installed = script(join(here.bin, "temporal"), saying("1.32.0", "0.0.0-DEV"));
    expect(await here.find()).toEqual({ path: installed, source: "path", server: "1.32.0", warning: null });
  });

  test("skips one on PATH that does not run", async () => {
    const here = await machine(null);
    script(join(here.bin, "temporal"), "exit 1");
    script(here.cached, saying("1.32.0", "cached"));
    expect(await here.find()).toMatchObject({ path: here.cached, source: "cache" });
  });

  test("uses the cached one if none is on PATH", async () => {
    const { bytes, sha256 } = archive();
    const here = await machine(serving(bytes));
    script(here.cached, saying("1.32.0", "cached"));
    expect(await here.find(sha256)).toMatchObject({ path: here.cached, source: "cache" });
  });

  test("downloads one if none is cached, and the next start finds it in the cache", async () => {
    const { bytes, sha256 } = archive();
    const here = await machine(serving(bytes));
    script(join(here.bin, "go"), BROKEN_GO);
    expect(await here.find(sha256)).toMatchObject({
      path: here.cached,
      source: "download",
      server: "1.32.0",
    });
    expect(await here.find(sha256)).toMatchObject({ path: here.cached, source: "cache" });
    expect(readdirSync(join(here.cached, ".."))).toEqual([`temporal-${VERSION}-${platformName()}`]);
  });

  test("replaces a cached one that does not run", async () => {
    const { bytes, sha256 } = archive();
    const here = await machine(serving(bytes));
    writeFileSync(here.cached, "half a program", { mode: 0o755 });
    expect(await here.find(sha256)).toMatchObject({ source: "download" });
  });

  test("builds one if the download fails, and reports the progress", async () => {
    const here = await machine(null);
    script(join(here.bin, "go"), FAKE_GO);
    expect(await here.find()).toMatchObject({ path: here.cached, source: "build", server: "1.32.0" });
    expect(here.news).toContain("1 modules downloaded");
    expect(here.news.at(-1)).toContain("1 packages compiled");
  });

  test("builds one if the download does not run here", async () => {
    const { bytes, sha256 } = archive("exit 1");
    const here = await machine(serving(bytes));
    script(join(here.bin, "go"), FAKE_GO);
    expect(await here.find(sha256)).toMatchObject({ source: "build" });
  });

  test("fails with an error that says what was tried and what to install", async () => {
    const here = await machine((_request, response) => void response.writeHead(404).end());
    script(join(here.bin, "go"), BROKEN_GO);
    const failure = here.find({ [platformName()]: "00" });
    await expect(failure).rejects.toThrow("there is no temporal on PATH");
    await expect(failure).rejects.toThrow(`${ARCHIVE} answered 404`);
    await expect(failure).rejects.toThrow("go build failed: dial tcp: lookup proxy: no such host");
    await expect(failure).rejects.toThrow("install the Temporal CLI");
    await expect(failure).rejects.toThrow("install Go 1.19 or newer");
    await expect(failure).rejects.toThrow("set TEMPORAL_ADDRESS");
    expect(existsSync(here.cached)).toBe(false);
  });

  test("does not build with a Go that is too old", async () => {
    const here = await machine(null);
    script(join(here.bin, "go"), 'echo "go version go1.18.2 linux/amd64"');
    await expect(here.find()).rejects.toThrow("Go 1.18 is too old");
  });

  test("lets a Go before 1.21 download a newer one, which builds", async () => {
    const here = await machine(null);
    const newer = join(here.bin, "..", "newer", "bin");
    mkdirSync(newer, { recursive: true });
    mkdirSync(join(newer, "..", "pkg", "tool"), { recursive: true });
    script(join(newer, "go"), FAKE_GO);
    script(
      join(here.bin, "go"),
      `if [ "$1" = version ]; then echo "go version go1.19.8 linux/amd64"; exit 0; fi
       [ "$1 $2" = "mod download" ] && echo '{"Dir":"${join(newer, "..")}"}'`,
    );
    expect(await here.find()).toMatchObject({ source: "build", server: "1.32.0" });
  });

  test("downloads once for two starts at once", async () => {
    const { bytes, sha256 } = archive();
    let requests = 0;
    const here = await machine((request, response) => {
      requests++;
      serving(bytes)(request, response);
    });
    const both = await Promise.all([here.find(sha256), here.find(sha256)]);
    expect(both.map((binary) => binary.source).sort()).toEqual(["cache", "download"]);
    expect(requests).toBe(1);
  });
});

describe("the server's version", () => {
  test("before 1.32 is accepted, with a warning about cancel", async () => {
    const here = await machine(null);
    script(join(here.bin, "temporal"), saying("1.29.1", "1.5.1"));
    const binary = await here.find();
    expect(binary).toMatchObject({ source: "path", server: "1.29.1" });
    expect(binary.warning).toMatch(/heartbeat/);
  });

  test.each([
    ["temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)", "1.32.0"],
    ["temporal version 0.0.0-DEV (Server 1.32.0, UI 2.54.1)", "1.32.0"],
    ["temporal version 2.0.0 (Server 2.1.0-157.1, UI 3.0.0)", "2.1.0-157.1"],
    ["tctl version 1.18.0", null],
  ])("is parsed, where there is one, in: %s", (output, server) => {
    expect(parseServerVersion(output)?.text ?? null).toBe(server);
  });
});

describe("a download", () => {
  const download = async (site: RequestListener, sha256: Partial<Record<string, string>>) => {
    const to = join(temporaryFolder(), "temporal");
    const news: string[] = [];
    const base = await serve(site);
    const options = {
      release: { version: VERSION, sha256 },
      base,
      to,
      onProgress: (sentence: string) => void news.push(sentence),
      answerWithin: 300,
      stalledAfter: 300,
    };
    const result = downloadTemporal(options).then(
      () => null,
      (error: unknown) => String(error),
    );
    return { failure: await result, to, news, left: readdirSync(join(to, "..")) };
  };

  test("is verified and unpacked", async () => {
    const { bytes, sha256 } = archive();
    const { failure, to, news } = await download(serving(bytes), sha256);
    expect(failure).toBeNull();
    expect(execFileSync(to, ["--version"]).toString()).toContain("Server 1.32.0");
    expect(news[0]).toMatch(/^0\.0 MB of 0\.0 MB$/);
  });

  test("follows a redirect", async () => {
    const { bytes, sha256 } = archive();
    const storage = await serve((_request, response) => void response.end(bytes));
    const { failure } = await download(
      (_request, response) => void response.writeHead(302, { location: `${storage}/object` }).end(),
      sha256,
    );
    expect(failure).toBeNull();
  });

  test("with another checksum is not unpacked, and nothing is left of it", async () => {
    const { bytes, sha256 } = archive();
    const tampered = Buffer.concat([bytes, Buffer.from("!")]);
    const { failure, left } = await download(serving(tampered), sha256);
    expect(failure).toMatch(/the checksum of http.* is [0-9a-f]{64}, and not [0-9a-f]{64}/);
    expect(left).toEqual([]);
  });

  test("that is not there fails and leaves nothing", async () => {
    const { failure, left } = await download((_request, response) => void response.writeHead(404).end(), {
      [platformName()]: "00",
    });
    expect(failure).toContain("answered 404");
    expect(left).toEqual([]);
  });

  test("that is interrupted fails and leaves nothing", async () => {
    const { bytes, sha256 } = archive();
    const { failure, left } = await download((_request, response) => {
      response.setHeader("content-length", bytes.length);
      response.write(bytes.subarray(0, 20), () => response.destroy());
    }, sha256);
    expect(failure).toContain(ARCHIVE);
    expect(left).toEqual([]);
  });

  test("that never answers, or stalls, is given up", async () => {
    const silent = await download(() => undefined, { [platformName()]: "00" });
    expect(silent.failure).toContain("no answer within 300 ms");
    const stalled = await download(
      (_request, response) => {
        response.setHeader("content-length", 1000);
        response.write("a");
      },
      { [platformName()]: "00" },
    );
    expect(stalled.failure).toContain("no data for 300 ms");
  });

  test("for a machine without a release fails", async () => {
    const { failure } = await download(() => undefined, {});
    expect(failure).toContain("there is no release of the Temporal CLI for");
  });
});

test("the release has a checksum for each platform that Postgres is bundled for", () => {
  for (const platform of ["linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"]) {
    expect(RELEASE.sha256[platform]).toMatch(/^[0-9a-f]{64}$/);
  }
});

test("the wrapper module builds the release that is downloaded, and the server of docker-compose.yml", () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
  const goMod = read("local/temporal/wrapper/go.mod");
  expect(goMod).toContain(`\tgithub.com/temporalio/cli v${RELEASE.version}\n`);
  const [, server = "none"] = /image: temporalio\/server:(\S+)/.exec(read("docker-compose.yml")) ?? [];
  expect(goMod).toContain(`\tgo.temporal.io/server v${server}\n`);
});
