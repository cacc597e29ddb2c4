/** The machine's tests alone, for mutation testing: without the global set-up that starts the databases. */
import { basename } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** A mutant is given up at the first failure, so what takes long comes last. */
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
    // It reads the sources, which are full of Stryker's switches there.
    exclude: ["test/machine/purity.test.ts"],
    env: { MUTATION: "true" },
    // The machine and its tests keep nothing between files; every mutant gets a worker of its own all the same.
    isolate: false,
    sequence: { sequencer: ShortestFirst },
  },
});
