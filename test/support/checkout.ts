/** Owns: a copy of this checkout in which something is missing or different, as on another person's machine. */
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../local/support.ts";

const ROOT = join(import.meta.dirname, "..", "..");
/** Of no use to a program that runs. */
const LEFT_OUT = new Set([".git", "node_modules", "build", "docs", "test", "reports"]);

export type Differences = {
  /** A package that `npm ci` has left out: `@vscode/ripgrep-linux-x64`. */
  readonly without?: string;
  /** The Node that package.json asks for: `>=99.0.0`. */
  readonly node?: string;
};

/** The folder of the copy, which is removed when the test is over. Its packages are those of this checkout. */
export function checkout({ without, node }: Differences): string {
  const folder = temporaryFolder();
  for (const name of readdirSync(ROOT))
    if (!LEFT_OUT.has(name)) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  if (node !== undefined) {
    const file = join(folder, "package.json");
    const content = JSON.parse(readFileSync(file, "utf8")) as object;
    writeFileSync(file, JSON.stringify({ ...content, engines: { node } }));
  }
  // Folders of its own: packages are found by where a program lies, and what is compiled is kept among them.
  const [from, to] = [join(ROOT, "node_modules"), join(folder, "node_modules")];
  mkdirSync(to);
  for (const name of readdirSync(from)) {
    if (name === ".cache") continue;
    if (!name.startsWith("@")) {
      symlinkSync(join(from, name), join(to, name));
      continue;
    }
    mkdirSync(join(to, name));
    for (const each of readdirSync(join(from, name)))
      if (`${name}/${each}` !== without) symlinkSync(join(from, name, each), join(to, name, each));
  }
  return folder;
}
