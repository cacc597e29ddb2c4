/** Owns: the programs that the agent's tools need on the machine. The user decides how to install them. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { StartError } from "./start-error.ts";

/** Programs with the names of their Debian packages. */
const NEEDED = new Map([
  ["perl", "perl"],
  ["rg", "ripgrep"],
]);

/** @throws StartError that names the programs that are not on the path. */
export function checkPrograms(path = process.env["PATH"] ?? ""): void {
  const missing = [...NEEDED.keys()].filter((program) => !isOn(path, program));
  if (missing.length === 0) return;
  const packages = missing.map((program) => NEEDED.get(program)).join(" ");
  throw new StartError(
    `Not on PATH: ${missing.join(" and ")}, without which the agent has no commands or no search. Install them (on Debian and Ubuntu: apt-get install ${packages}) and start again.`,
  );
}

function isOn(path: string, program: string): boolean {
  return path.split(delimiter).some((folder) => {
    try {
      const file = join(folder, program);
      accessSync(file, constants.X_OK);
      return statSync(file).isFile();
    } catch {
      return false;
    }
  });
}
