/** Owns: `bedrock doctor`: the findings of local/doctor.ts as lines, and whether something is missing. */
import { examine, type Finding } from "../local/doctor.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import type { Env } from "./server.ts";
import type { Style, Terminal } from "./terminal.ts";

const MARKS: { readonly [status in Finding["status"]]: readonly [mark: string, style: Style] } = {
  ok: ["ok     ", "green"],
  warning: ["warning", "yellow"],
  problem: ["PROBLEM", "red"],
};

export async function doctor(terminal: Terminal, env: Env, isJson: boolean): Promise<ExitCode> {
  const findings = await examine(env);
  if (isJson) terminal.data(JSON.stringify({ findings }));
  else
    for (const { name, status, found, fix } of findings) {
      const [mark, style] = MARKS[status];
      terminal.tell(`${mark}  ${name}: ${found}`, style);
      if (fix !== "") terminal.tell(`         ${fix}`);
    }
  return findings.some(({ status }) => status === "problem") ? EXIT.failed : EXIT.done;
}
