/** Owns: the parts that start once for a whole test run: a PostgreSQL, a Temporal server, the workflows' bundle. */
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { ensureTemporalBinary } from "../../local/temporal/find.ts";
import { startTemporal } from "../../local/temporal/server.ts";
import { ensureWorkflowBundle } from "../../worker/bundle.ts";
import { findChromium, NO_CHROMIUM } from "../web/chromium.ts";
import { startTestPostgres } from "./postgres.ts";

/** Of this checkout alone: nobody else may write what workers run. */
const BUNDLES = join(import.meta.dirname, "..", "..", "node_modules", ".cache", "workflows");

declare module "vitest" {
  export interface ProvidedContext {
    /** URL of the maintenance database. Tests have databases of their own (database.ts). */
    postgresUrl: string;
    /** Shared by the run. Tests have task queues of their own (system.ts). */
    temporalAddress: string;
    temporalBinary: string;
    bundlePath: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const say = (line: string): void => console.log(line);
  if (findChromium() === null) say(NO_CHROMIUM);
  const binary = await ensureTemporalBinary({ onProgress: say });
  const [postgres, temporal, bundlePath] = await Promise.all([
    startTestPostgres(),
    startTemporal({ binary: binary.path }),
    ensureWorkflowBundle(BUNDLES, say),
  ]);
  project.provide("postgresUrl", postgres.url);
  project.provide("temporalAddress", temporal.address);
  project.provide("temporalBinary", binary.path);
  project.provide("bundlePath", bundlePath);
  return async () => {
    await Promise.all([postgres.stop(), temporal.stop()]);
  };
}
