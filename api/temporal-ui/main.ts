/**
 * Owns: the guard of a Temporal Web UI that runs elsewhere (TEMPORAL_UI_ADDRESS), as a process. It prints
 * `temporal-ui ready http://…`, and ends on SIGTERM or SIGINT.
 */
import { ConfigError, formatOf, loadConfig, secretsOf, type Config, type Env } from "../../config.ts";
import { createLog } from "../../observability/log.ts";
import { createAccess } from "../access/access.ts";
import { serveUi } from "./serve.ts";

export async function main(env: Env): Promise<void> {
  try {
    await run(loadConfig(env));
  } catch (error) {
    console.error(error instanceof ConfigError ? error.message : error);
    process.exit(1);
  }
}

async function run(config: Config): Promise<void> {
  const { temporalUiAddress: behind } = config;
  if (behind === null)
    throw new ConfigError(["TEMPORAL_UI_ADDRESS is not set: the http address of Temporal's Web UI."]);
  const log = createLog({
    ...{ service: "temporal-ui", level: config.logLevel, format: formatOf(config) },
    secrets: secretsOf(config),
  });
  const closing = new AbortController();
  const access = createAccess({ ...config, say: (line) => log.warn(line), closing: closing.signal });
  const listening = await serveUi({
    ...config,
    ...{ behind, access },
    report: (request, error) => log.error({ request, err: error }, "temporal-ui error"),
  });
  const stop = async () => {
    closing.abort();
    await listening.close(0);
    process.exit(0);
  };
  process.once("SIGTERM", () => void stop()).once("SIGINT", () => void stop());
  log.info(`temporal-ui ready ${listening.url}`);
}
