/**
 * Owns: a small file system for a run's data folder, which can be full. It is a mounted file, so that writes take as
 * long as elsewhere. Only root can mount one.
 */
import { execFile } from "node:child_process";
import { mkdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";

/** More than a run's data need; the file takes only the space that is used. */
const SIZE_BYTES = 2 * 1024 ** 3;
const LOOK_MS = 50;

const run = promisify(execFile);

export class SmallDisk {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Makes the folder and mounts the file system on it; resolves to a sentence where that is not possible. */
  static async mount(folder: string): Promise<SmallDisk | string> {
    mkdirSync(folder);
    const image = `${folder}.image`;
    try {
      writeFileSync(image, "");
      truncateSync(image, SIZE_BYTES);
      // No room is kept for root.
      await run("mkfs.ext4", ["-q", "-m", "0", image]);
      await run("mount", ["-o", "loop", image, folder]);
      return new SmallDisk(folder);
    } catch (error) {
      rmSync(image, { force: true });
      return error instanceof Error ? error.message.trim().replaceAll("\n", " ") : String(error);
    }
  }

  /**
   * Leaves no room for `ms` milliseconds, even if other processes free some meanwhile.
   *
   * @returns whether there was none
   */
  async fill(ms: number): Promise<boolean> {
    const until = performance.now() + ms;
    let wasFull = false;
    const fillers: string[] = [];
    try {
      while (performance.now() < until) {
        const { bavail, bsize } = statfsSync(this.#folder);
        wasFull ||= bavail === 0;
        const filler = join(this.#folder, `filler${fillers.length}`);
        if (bavail > 0) fillers.push(filler);
        // Fails if another process has taken some of it meanwhile, but takes the rest first.
        if (bavail > 0) await run("fallocate", ["-l", `${bavail * bsize}`, filler]).catch(() => undefined);
        await pause(LOOK_MS);
      }
    } finally {
      for (const filler of fillers) rmSync(filler, { force: true });
    }
    return wasFull;
  }

  /** Unmounts lazily: leftover processes must not prevent it, and are reported elsewhere. */
  async unmount(): Promise<void> {
    await run("umount", ["--lazy", this.#folder]);
  }
}
