/** Owns: putting the probe into all pages that a profile opens from now on. */
import { join } from "node:path";
import { build } from "esbuild";
import type { BrowserContext } from "playwright-core";

let built: Promise<string> | undefined;

export async function installProbe(context: BrowserContext): Promise<void> {
  built ??= buildProbe();
  await context.addInitScript({ content: await built });
}

async function buildProbe(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "in-page.ts")],
    ...{ bundle: true, format: "iife", target: "es2023", write: false, logLevel: "silent" },
  });
  return outputFiles[0]?.text ?? "";
}
