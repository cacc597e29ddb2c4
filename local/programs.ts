/** Owns: which programs the machine must have for the agent's tools to work; what installs them is the person's choice. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { StartError } from "./start-error.ts";

/** By the name of their Debian package. */
const NEEDED = new Map([
  ["perl", "perl"],
  ["rg", "ripgrep"],
]);

/** @throws StartError that names what is not on the path. */
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
