/** Owns: what `npm start` needs of the machine, and the sentence for the user where it is missing. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { StartError } from "./start-error.ts";

/** The program that runs the agent's commands (sandbox/launcher.pl); ripgrep comes as a package. */
const NEEDED = "perl";

/** @throws StartError that says what this machine lacks. */
export function checkMachine(path = process.env["PATH"] ?? "", platform: string = process.platform): void {
  if (platform !== "linux")
    throw new StartError(
      `Bedrock needs Linux: it bounds and kills the agent's commands by the kernel. This is ${platform}. Start it in a Linux container or virtual machine, on Windows in WSL 2.`,
    );
  if (isOn(path, NEEDED)) return;
  throw new StartError(
    `Not on PATH: ${NEEDED}, without which the agent has no commands. Install it (on Debian and Ubuntu: apt-get install ${NEEDED}) and start again.`,
  );
}

/** Whether a folder of PATH has the program. */
export function isOn(path: string, program: string): boolean {
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
