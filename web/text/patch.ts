/**
 * Owns: the difference between two states of a text's blocks, and applying it. Text grows at its end, so a patch says
 * below which last node what is new; all else keeps its identity, and the page does not render it again. Pure.
 */
import type { Block, Node } from "./model.ts";

/** At the end of `path`, a list of indices from the blocks down, the nodes from `from` on are replaced by `nodes`. */
export type Patch = {
  readonly path: readonly number[];
  readonly from: number;
  readonly nodes: readonly Node[];
};

type Parent = Extract<Node, { readonly nodes: readonly Node[] }>;

/** What makes `after` of `before`; empty if they are equal. */
export function patchesBetween(before: readonly Block[], after: readonly Block[]): Patch[] {
  const patches: Patch[] = [];
  collect(before, after, [], patches);
  return patches;
}

function collect(
  before: readonly Node[],
  after: readonly Node[],
  path: readonly number[],
  patches: Patch[],
): void {
  const shorter = Math.min(before.length, after.length);
  let same = 0;
  while (same < shorter && isEqual(before[same], after[same])) same++;
  if (same === before.length && same === after.length) return;
  let from = same;
  const old = before[same];
  const now = after[same];
  if (isParent(old) && isParent(now) && isSameShell(old, now)) {
    collect(old.nodes, now.nodes, [...path, same], patches);
    from++;
  }
  if (from < before.length || from < after.length) patches.push({ path, from, nodes: after.slice(from) });
}

/** The blocks after the patches. */
export const applyPatches = (blocks: readonly Block[], patches: readonly Patch[]): readonly Block[] =>
  // A patch of blocks has blocks in the places of blocks.
  patches.reduce<readonly Node[]>(
    (nodes, patch) => replaced(nodes, patch.path, patch),
    blocks,
  ) as readonly Block[];

function replaced(nodes: readonly Node[], path: readonly number[], patch: Patch): readonly Node[] {
  const [index, ...rest] = path;
  if (index === undefined) return [...nodes.slice(0, patch.from), ...patch.nodes];
  const parent = nodes[index];
  if (!isParent(parent)) throw new Error("A patch names a node that has no nodes.");
  const result = [...nodes];
  result[index] = { ...parent, nodes: replaced(parent.nodes, rest, patch) } as Node;
  return result;
}

const isParent = (node: Node | undefined): node is Parent => typeof node === "object" && "nodes" in node;

/** They differ in their nodes only. */
const isSameShell = (a: Parent, b: Parent): boolean =>
  a.kind === b.kind && isEqual({ ...a, nodes: null }, { ...b, nodes: null });

/** Whether two pieces of plain data are equal. */
function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((item: unknown, at) => isEqual(item, b[at]))
    );
  }
  const entries = Object.entries(a);
  const other = new Map<string, unknown>(Object.entries(b));
  return entries.length === other.size && entries.every(([key, value]) => isEqual(value, other.get(key)));
}
