/**
 * Owns: the question whether packages that are installed have known vulnerabilities, as a part of `npm run check`.
 * High and critical ones fail it: such a package has to be replaced before anything lands. Lower ones are said only.
 * Most are slow expressions in tools that read nothing but our own sources, and often there is no newer version.
 * A registry without this service, and a machine without network, fail nothing, but a line says that nobody was asked.
 */
import { spawnSync } from "node:child_process";

const FAILS = ["high", "critical"];

const { stdout } = spawnSync("npm", ["audit", "--json"], { encoding: "utf8", timeout: 60_000 });
const { vulnerabilities, message = "there is no answer" } = parsed(stdout);
if (vulnerabilities === undefined) {
  console.log(`NOT ASKED: the registry does not say which packages have vulnerabilities (${message}).`);
} else {
  for (const { name, severity, range } of Object.values(vulnerabilities))
    console.log(`${severity}: ${name} ${range}`);
  if (Object.values(vulnerabilities).some(({ severity }) => FAILS.includes(severity))) process.exitCode = 1;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
