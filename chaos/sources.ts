/** Owns: a copy of the product's sources that a run may change: a new release, or a defect put in on purpose. */
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
/** What the product does not run from. */
const LEFT_OUT = ["node_modules", ".git", "bench", "chaos", "docs", "reports", "test"];

/** A text of a file, there exactly once, and what takes its place. */
export type Edit = { readonly file: string; readonly from: string; readonly to: string };

export class Sources {
  readonly root: string;

  /** Copies them into a new folder. The packages are those of the original; what is compiled from the copy is its own. */
  constructor(root: string) {
    this.root = root;
    mkdirSync(root);
    for (const name of readdirSync(ROOT)) {
      if (!LEFT_OUT.includes(name)) cpSync(join(ROOT, name), join(root, name), { recursive: true });
    }
    const packages = join(ROOT, "node_modules");
    mkdirSync(join(root, "node_modules"));
    for (const name of readdirSync(packages)) {
      if (name !== ".cache") symlinkSync(join(packages, name), join(root, "node_modules", name));
    }
  }

  /** @throws where a text is not there: a change that changes nothing would show nothing. */
  change(edits: readonly Edit[]): void {
    for (const { file, from, to } of edits) {
      const path = join(this.root, file);
      const parts = readFileSync(path, "utf8").split(from);
      if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times "${from}", not once.`);
      writeFileSync(path, parts.join(to));
    }
  }
}
