/**
 * Owns: compiling rules over system calls into the classic BPF program that seccomp runs for each of them.
 * Not here: which rules there are (filter.ts).
 */
import type { Range } from "./ranges.ts";

/** A condition on the lower 32 bits of one argument, after `mask`. */
export type Condition = { readonly arg: number; readonly mask?: number } & (
  | { readonly isOneOf: readonly number[] }
  | { readonly isNoneOf: readonly number[] }
  | { readonly isWithin: readonly Range[] }
);

/** The call fails with `errno`, always or under the condition. */
export type Rule = { readonly number: number; readonly errno: number; readonly when?: Condition };

export type Instruction = {
  readonly code: number;
  readonly ifTrue?: number;
  readonly ifFalse?: number;
  readonly k: number;
};

const LOAD = 0x20;
const AND = 0x54;
const JUMP = 0x05;
const IF_EQUAL = 0x15;
const IF_GREATER = 0x25;
const IF_AT_LEAST = 0x35;
const RETURN = 0x06;

/** Offsets in `struct seccomp_data`. */
const NUMBER = 0;
const ARCHITECTURE = 4;
const ARGUMENTS = 16;

const ALLOW = 0x7fff_0000;
const FAIL = 0x0005_0000;

const load = (offset: number): Instruction => ({ code: LOAD, k: offset });
const fail = (errno: number): Instruction => ({ code: RETURN, k: FAIL | errno });
const allow: Instruction = { code: RETURN, k: ALLOW };

export type Preamble = {
  /** AUDIT_ARCH_…; calls of any other fail with `errno`. */
  readonly architecture: number;
  readonly errno: number;
  /** If given, calls from this number on fail: they belong to another ABI of the same architecture. */
  readonly below?: { readonly number: number; readonly errno: number };
};

/** The program checks the rules of one call in their order, and allows what no rule denies. */
export function compile({ architecture, errno, below }: Preamble, rules: readonly Rule[]): Instruction[] {
  return [
    load(ARCHITECTURE),
    { code: IF_EQUAL, k: architecture, ifTrue: 1, ifFalse: 0 },
    fail(errno),
    load(NUMBER),
    ...(below === undefined
      ? []
      : [{ code: IF_AT_LEAST, k: below.number, ifTrue: 0, ifFalse: 1 }, fail(below.errno)]),
    ...blocksOf(rules).flatMap(({ numbers, block }) => [
      // A conditional jump reaches 255 instructions, a plain one any number.
      ...numbers.map((k, n) => ({ code: IF_EQUAL, k, ifTrue: numbers.length - n, ifFalse: 0 })),
      { code: JUMP, k: block.length },
      ...block,
    ]),
    allow,
  ];
}

type Block = { readonly numbers: number[]; readonly block: readonly Instruction[] };

/** Calls with the same rules share a block: a program has 4096 instructions at most. */
function blocksOf(rules: readonly Rule[]): readonly Block[] {
  const calls = new Map<number, Rule[]>();
  for (const rule of rules) calls.set(rule.number, [...(calls.get(rule.number) ?? []), rule]);
  const blocks = new Map<string, Block>();
  for (const [number, ofCall] of calls) {
    const key = JSON.stringify(ofCall.map(({ errno, when }) => [errno, when]));
    const block = blocks.get(key);
    if (block === undefined)
      blocks.set(key, { numbers: [number], block: [...ofCall.flatMap(instructionsOf), allow] });
    else block.numbers.push(number);
  }
  return [...blocks.values()];
}

function instructionsOf({ errno, when }: Rule): Instruction[] {
  if (when === undefined) return [fail(errno)];
  const read = [
    load(ARGUMENTS + 8 * when.arg),
    ...(when.mask === undefined ? [] : [{ code: AND, k: when.mask }]),
  ];
  if ("isOneOf" in when) {
    return [
      ...read,
      ...when.isOneOf.flatMap((k) => [{ code: IF_EQUAL, k, ifTrue: 0, ifFalse: 1 }, fail(errno)]),
    ];
  }
  if ("isWithin" in when) {
    return [
      ...read,
      ...when.isWithin.flatMap(([first, last]) => [
        { code: IF_AT_LEAST, k: first, ifTrue: 0, ifFalse: 2 },
        { code: IF_GREATER, k: last, ifTrue: 1, ifFalse: 0 },
        fail(errno),
      ]),
    ];
  }
  const { isNoneOf } = when;
  return [
    ...read,
    ...isNoneOf.map((k, n) => ({ code: IF_EQUAL, k, ifTrue: isNoneOf.length - n, ifFalse: 0 })),
    fail(errno),
  ];
}

/** As `struct sock_filter[]`. */
export function assemble(instructions: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(8 * instructions.length);
  instructions.forEach(({ code, ifTrue = 0, ifFalse = 0, k }, n) => {
    bytes.writeUInt16LE(code, 8 * n);
    bytes.writeUInt8(ifTrue, 8 * n + 2);
    bytes.writeUInt8(ifFalse, 8 * n + 3);
    bytes.writeUInt32LE(k >>> 0, 8 * n + 4);
  });
  return bytes;
}
