/** The machine's tests alone, for mutation testing: without the global set-up that starts the databases. */
import { basename } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** A mutant's run ends at the first failure, so the slow files come last. */
class ShortestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) =>
      /propert|invariants|totality/.test(basename(moduleId)) ? 1 : 0;
    return Promise.resolve([...files].sort((a, b) => place(a) - place(b)));
  }
}

export default defineConfig({
  test: {
    include: ["test/machine/*.test.ts"],
    // This test reads the sources, which are full of Stryker's switches in a mutation run.
    exclude: ["test/machine/purity.test.ts"],
    env: { MUTATION: "true" },
    // The machine and its tests keep no state between files. Every mutant gets its own worker nevertheless.
    isolate: false,
    sequence: { sequencer: ShortestFirst },
  },
});
