/** Properties of a parent together with its sub-agents, for all events in any order (REQ-BED-008). */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Family } from "./family.ts";
import { textOf } from "./support.ts";
import { Chance, settings } from "./walks.ts";

const choices = fc.array(fc.nat(0x7fff_ffff), { minLength: 20, maxLength: 150, size: "max" });

test("a parent never waits in vain, never leaves early, and comes to rest", () => {
  const met = { spawned: 0, waited: 0, ended: 0 };
  fc.assert(
    fc.property(choices, (walk) => {
      const family = new Family();
      for (const choice of walk) family.step(new Chance(choice));
      family.rest(new Chance(walk[0] ?? 0));
      met.spawned += family.children.size;
      met.ended += [...family.children.values()].filter(({ ended }) => ended).length;
      met.waited += family.parent.steps.filter(({ state }) => state.kind === "awaiting_sub_agents").length;
      // Every call that spawned is answered by one result with every task's outcome, in order.
      for (const message of family.parent.messages) {
        if (message.type !== "tool" || message.content[0].name !== "spawn_agents") continue;
        const positions = [...textOf(message).matchAll(/^Task (\d+): /gm)].map(([, n]) => Number(n));
        expect(positions).toEqual(positions.map((_, n) => n + 1));
      }
    }),
    settings,
  );
  expect(met.ended).toBe(met.spawned);
  // The walks reach the state under test.
  expect(met.waited).toBeGreaterThan(settings.numRuns);
});
