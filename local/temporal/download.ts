/**
 * Owns: fetching and verifying the official archive. Nothing unverified is unpacked. If the network is closed or
 * silent, the download gives up within seconds, because there is another way to get the program.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { chmod, mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import type { Report } from "../progress.ts";
import { sentenceOf, StartError } from "../start-error.ts";
import { archiveUrl, DOWNLOADS, platformName, RELEASE, type Release } from "./release.ts";

export type DownloadOptions = {
  readonly release: Release;
  /** The base address of the release's paths. */
  readonly base: string;
  /** Where the program is put, atomically. Its folder exists. */
  readonly to: string;
  readonly onProgress: Report;
  readonly platform?: string;
  /** Milliseconds until the server must have answered; 5000 by default. */
  readonly answerWithin?: number;
  /** Milliseconds without a byte after which the transfer is given up; 15000 by default. */
  readonly stalledAfter?: number;
  readonly signal?: AbortSignal;
};

/** @throws StartError that says why the download failed; `to` is untouched then. */
export async function downloadTemporal(options: DownloadOptions): Promise<void> {
  const { release, base, to } = options;
  const platform = options.platform ?? platformName();
  const expected = release.sha256[platform];
  if (expected === undefined) throw new StartError(`there is no release of the Temporal CLI for ${platform}`);
  const url = archiveUrl(base, release.version, platform);
  const folder = await mkdtemp(join(dirname(to), "download-"));
  try {
    const archive = join(folder, "archive.tar.gz");
    const actual = await fetchTo(archive, url, options);
    if (actual !== expected) {
      throw new StartError(`the checksum of ${url} is ${actual}, and not ${expected}`);
    }
    options.onProgress("unpacking");
    await promisify(execFile)("tar", ["-xzf", archive, "-C", folder, "temporal"]);
    const program = join(folder, "temporal");
    await chmod(program, 0o755);
    await rename(program, to);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw error instanceof StartError ? error : new StartError(`${url}: ${sentenceOf(error)}`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Whether the archive is there now. TEMPORAL_DOWNLOADS in `env` names a mirror. */
export async function isDownloadable(env: NodeJS.ProcessEnv, answerWithin = 3000): Promise<boolean> {
  const platform = platformName();
  if (RELEASE.sha256[platform] === undefined) return false;
  const url = archiveUrl(env["TEMPORAL_DOWNLOADS"] ?? DOWNLOADS, RELEASE.version, platform);
  const signal = AbortSignal.timeout(answerWithin);
  return fetch(url, { method: "HEAD", signal }).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Writes the response to `file` and returns its SHA-256. */
async function fetchTo(file: string, url: string, options: DownloadOptions): Promise<string> {
  const { answerWithin = 5000, stalledAfter = 15_000, onProgress } = options;
  const giveUp = new AbortController();
  let reason = `no answer within ${answerWithin} ms`;
  let timer = setTimeout(() => giveUp.abort(), answerWithin);
  const signal =
    options.signal === undefined ? giveUp.signal : AbortSignal.any([giveUp.signal, options.signal]);
  try {
    const response = await fetch(url, { signal });
    if (response.status !== 200 || response.body === null) {
      throw new StartError(`${url} answered ${response.status}`);
    }
    const total = Number(response.headers.get("content-length") ?? Number.NaN);
    const hash = createHash("sha256");
    let received = 0;
    reason = `no data for ${stalledAfter} ms`;
    const watch = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        clearTimeout(timer);
        timer = setTimeout(() => giveUp.abort(), stalledAfter);
        hash.update(chunk);
        received += chunk.length;
        onProgress(
          Number.isNaN(total) ? megabytes(received) : `${megabytes(received)} of ${megabytes(total)}`,
        );
        done(null, chunk);
      },
    });
    clearTimeout(timer);
    timer = setTimeout(() => giveUp.abort(), stalledAfter);
    await pipeline(Readable.from(response.body), watch, createWriteStream(file), { signal });
    return hash.digest("hex");
  } catch (error) {
    throw giveUp.signal.aborted ? new StartError(`${url}: ${reason}`) : error;
  } finally {
    clearTimeout(timer);
  }
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
