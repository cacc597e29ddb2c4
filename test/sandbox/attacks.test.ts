/**
 * REQ-BASH-008, REQ-BED-014: what a command of Restricted mode tries in vain, and what works. Each attack is made for
 * real, on every version of Landlock that this kernel can play, and once more in Unrestricted mode, where it succeeds.
 */
import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { confinement } from "../../sandbox/confinement.ts";
import { sandboxOfHost } from "../../sandbox/host.ts";
import { architecture } from "../../sandbox/system-calls.ts";
import { Arena } from "./arena.ts";
import { GROUPS, hasSucceeded } from "./attacks.ts";

const { available, abi, reason } = await sandboxOfHost();
if (!available) console.warn(`SKIPPED, all attacks on Restricted mode: ${reason ?? ""}`);
const arch = architecture() ?? "x64";
const newest = abi ?? 0;
const versions = Array.from({ length: newest }, (_, n) => newest - n);

const has = (program: string): boolean => spawnSync("which", [program]).status === 0;

describe.skipIf(!available)("Restricted mode", () => {
  for (const [name, group] of Object.entries(GROUPS)) {
    describe(name, () => {
      test.each(group.attacks.filter(({ needs }) => needs === undefined || has(needs)))(
        "$name",
        async (attack) => {
          const arena = await Arena.open();
          const before = arena.snapshot();
          for (const version of versions) {
            const { output, spawnError } = await arena.run(
              attack.script,
              confinement({ arch, abi: version }),
            );
            const came = hasSucceeded(attack, group, arena, before, output);
            expect({
              version,
              came,
              spawnError,
              changed: arena.snapshot() !== before,
              heard: arena.heard,
            }).toEqual({
              version,
              came: false,
              spawnError: null,
              changed: false,
              heard: 0,
            });
            expect(arena.victimIsAlive).toBe(true);
          }
          const { output } = await arena.run(attack.script, null);
          expect({ output, came: hasSucceeded(attack, group, arena, before, output) }).toMatchObject({
            came: true,
          });
        },
      );
    });
  }
});
