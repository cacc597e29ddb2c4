/** Owns: where a new conversation begins, and with which model: options of several commands. */
import type { Command } from "commander";

export type Place = { readonly cwd: string; readonly host?: string; readonly model?: string };

export const withPlace = (command: Command): Command =>
  command
    .option("--cwd <directory>", "of a new conversation", process.cwd())
    .option("--host <name>", "the tool host that has the directory")
    .option("--model <id>", "of a new conversation");

/** Of all flags of a command, those of the place that are given. */
export const placeOf = ({ cwd, host, model }: Place): Place => ({
  cwd,
  ...(host === undefined ? {} : { host }),
  ...(model === undefined ? {} : { model }),
});
