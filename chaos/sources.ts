/** Owns: a copy of the product's sources that a run may change: a new release, or a defect put in on purpose. */
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
/** Folders that the product does not need to run. */
const LEFT_OUT = ["node_modules", ".git", "bench", "chaos", "docs", "reports", "test"];

/** A text that is in a file exactly once, and its replacement. */
export type Edit = { readonly file: string; readonly from: string; readonly to: string };

/** @throws where `from` is not in the text exactly once. */
export function changed(text: string, { file, from, to }: Edit): string {
  const parts = text.split(from);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times "${from}", not once.`);
  return parts.join(to);
}

export class Sources {
  readonly root: string;

  /** Copies the sources into a new folder. The copy uses the packages of the original, but its own compiled code. */
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

  /** @throws when a text is not there exactly once: a change that changes nothing would prove nothing. */
  change(edits: readonly Edit[]): void {
    for (const { file, from, to } of edits) {
      const path = join(this.root, file);
      writeFileSync(path, changed(readFileSync(path, "utf8"), { file, from, to }));
    }
  }
}
