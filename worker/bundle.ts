/**
 * Owns: the bundle that workers run workflows from. Bundling takes seconds, so it is done once per content of the
 * sources, and the result is kept in a folder.
 * Not here: this file is not part of the bundle itself.
 */
import { bundleWorkflowCode, DefaultLogger } from "@temporalio/worker";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FAILURE_CONVERTER } from "../protocol/payload-encryption.ts";

const ROOT = join(import.meta.dirname, "..");
/** The folders whose sources make up a bundle. */
const SOURCES = ["workflows", "machine", "protocol"];

/**
 * The path of an up-to-date bundle in `folder`, made if it is not there.
 *
 * @param onProgress called with a sentence when it has to be made.
 */
export async function ensureWorkflowBundle(
  folder: string,
  onProgress: (sentence: string) => void = () => undefined,
): Promise<string> {
  const path = join(folder, `workflows-${await buildOfSources()}.js`);
  try {
    await readFile(path);
    return path;
  } catch {
    onProgress("bundling the workflows");
  }
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(ROOT, "workflows", "conversation.ts"),
    failureConverterPath: FAILURE_CONVERTER,
    logger: new DefaultLogger("WARN"),
  });
  await mkdir(folder, { recursive: true });
  // Two workers may bundle at the same time. Either result is good, but a half-written file is not.
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, code);
  await rename(temporary, path);
  return path;
}

/** A name for the workflows' code: releases that run the same code have the same. */
export async function buildOfSources(): Promise<string> {
  const hash = createHash("sha256");
  for (const folder of SOURCES) {
    const names = (await readdir(join(ROOT, folder))).filter((name) => /\.m?ts$|\.mjs$/.test(name)).sort();
    for (const name of names)
      hash.update(`${folder}/${name}\n`).update(await readFile(join(ROOT, folder, name)));
  }
  // The SDK's own code is in the bundle, too.
  hash.update(await readFile(join(ROOT, "package-lock.json")));
  return hash.digest("hex").slice(0, 16);
}
