import { spawn } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { script, temporaryFolder } from "./support.ts";

const LOCAL = fileURLToPath(new URL("../../local/", import.meta.url));

type Clone = {
  readonly folder: string;
  /** The folder of the fake npm, the only one on PATH. */
  readonly bin: string;
  readonly setUp: () => Promise<{ code: number | null; output: string }>;
  /** The first argument of each run of npm. */
  readonly npmRuns: () => string[];
};

/** A fresh clone with one dependency, and a machine with nothing but Node. */
function clone(needs = ">=20.19.0"): Clone {
  const folder = temporaryFolder();
  const bin = join(folder, "bin");
  mkdirSync(bin);
  for (const tool of ["mkdir", "cat"]) symlinkSync(join("/bin", tool), join(bin, tool));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ engines: { node: needs } }));
  lockOf(folder, "1.0.0");
  mkdirSync(join(folder, "local"));
  for (const name of ["setup.mjs", "node-version.mjs", "patches.mjs"])
    copyFileSync(join(LOCAL, name), join(folder, "local", name));
  // npm replaces the other node_modules.
  mkdirSync(join(folder, "local", "node_modules"));
  symlinkSync(join(LOCAL, "../node_modules/diff"), join(folder, "local", "node_modules", "diff"));
  mkdirSync(join(folder, "patches"));
  return {
    folder,
    bin,
    npmRuns: () => {
      const log = join(folder, "npm.log");
      return existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [];
    },
    setUp: () =>
      new Promise((resolve, reject) => {
        const child = spawn(process.execPath, [join(folder, "local", "setup.mjs")], { env: { PATH: bin } });
        let output = "";
        for (const stream of [child.stdout, child.stderr]) {
          stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
        }
        child.once("error", reject);
        child.once("close", (code) => resolve({ code, output }));
      }),
  };
}

const packages = (version: string) => ({
  "node_modules/left": { version, integrity: `sha512-${version}` },
  "node_modules/elsewhere": { version, integrity: "x", optional: true, os: ["aix"] },
});

function lockOf(folder: string, version: string): void {
  writeFileSync(
    join(folder, "package-lock.json"),
    JSON.stringify({ packages: { "": {}, ...packages(version) } }),
  );
}

const npm = ({ bin, folder }: Clone, then: string) =>
  script(join(bin, "npm"), `echo "$1" >> ${folder}/npm.log\n${then}`);

test("a fresh clone installs its packages once", async () => {
  const here = clone();
  npm(here, "mkdir node_modules");
  const first = await here.setUp();
  expect(first).toMatchObject({ code: 0, output: expect.stringContaining("Installing") as string });
  expect(await here.setUp()).toEqual({ code: 0, output: "" });
  expect(here.npmRuns()).toEqual(["ci"]);
});

test("a changed lock file installs the packages again", async () => {
  const here = clone();
  npm(here, "mkdir -p node_modules");
  await here.setUp();
  lockOf(here.folder, "1.0.1");
  await here.setUp();
  await here.setUp();
  expect(here.npmRuns()).toEqual(["ci", "ci"]);
});

test("packages that a person installed with npm ci are kept if they match the lock file", async () => {
  const here = clone();
  npm(here, ":");
  mkdirSync(join(here.folder, "node_modules"));
  const { "node_modules/left": left } = packages("1.0.0");
  const note = (version: object) =>
    writeFileSync(
      join(here.folder, "node_modules", ".package-lock.json"),
      JSON.stringify({ packages: { "node_modules/left": version } }),
    );
  note(left);
  expect(await here.setUp()).toEqual({ code: 0, output: "" });
  expect(here.npmRuns()).toEqual([]);

  rmSync(join(here.folder, "node_modules", ".bedrock-setup"));
  note({ ...left, version: "0.9.0" });
  await here.setUp();
  expect(here.npmRuns()).toEqual(["ci"]);
});

test("an older Node is refused with a sentence", async () => {
  const here = clone(">=99.1.2");
  const { code, output } = await here.setUp();
  expect(code).toBe(1);
  expect(output).toBe(
    `Node 99.1.2 or newer is needed, this is ${process.versions.node}. Install it from https://nodejs.org and start again.\n`,
  );
});

test("without npm the setup says where npm comes from", async () => {
  const { code, output } = await clone().setUp();
  expect(code).toBe(1);
  expect(output).toContain("npm is not on PATH. It comes with Node");
  expect(output).not.toMatch(/^\s+at /m);
});

test("an unreachable registry is named as such, and the next run tries again", async () => {
  const here = clone();
  npm(
    here,
    `echo "npm error code ENOTFOUND" >&2; echo "npm error syscall getaddrinfo" >&2; mkdir -p node_modules; exit 1`,
  );
  const { code, output } = await here.setUp();
  expect(code).toBe(1);
  expect(output).toContain("The package registry cannot be reached");
  expect(output).toContain("getaddrinfo");
  await here.setUp();
  expect(here.npmRuns()).toEqual(["ci", "ci"]);
});

test("any other failure of npm is shown without a stack", async () => {
  const here = clone();
  npm(here, `echo "npm error the lock is out of sync" >&2; echo "    at Object.ci (ci.js:1)" >&2; exit 1`);
  const { code, output } = await here.setUp();
  expect(code).toBe(1);
  expect(output).toContain("npm ci failed:\nnpm error the lock is out of sync");
  expect(output).not.toContain("ci.js");
});

/** A package's file as npm installs it, and a patch of its first line. */
const INSTALLED = "export const a = 1;\nexport const b = 2;\n";
const patchTo = (line: string) =>
  [
    "--- node_modules/left/index.js",
    "+++ node_modules/left/index.js",
    "@@ -1,2 +1,2 @@",
    "-export const a = 1;",
    `+${line}`,
    " export const b = 2;\n",
  ].join("\n");

test("packages are patched once they are installed, and installed again for another patch", async () => {
  const here = clone();
  const file = join(here.folder, "node_modules", "left", "index.js");
  const install = `mkdir -p node_modules/left; printf '${INSTALLED.replaceAll("\n", "\\n")}' > node_modules/left/index.js`;
  npm(here, install);
  const patch = join(here.folder, "patches", "left+1.0.0.patch");
  writeFileSync(patch, patchTo("export const a = 3;"));
  expect(await here.setUp()).toMatchObject({ code: 0 });
  expect(readFileSync(file, "utf8")).toBe("export const a = 3;\nexport const b = 2;\n");
  expect(await here.setUp()).toEqual({ code: 0, output: "" });

  writeFileSync(patch, patchTo("export const a = 4;"));
  expect(await here.setUp()).toMatchObject({ code: 0 });
  expect(readFileSync(file, "utf8")).toBe("export const a = 4;\nexport const b = 2;\n");
  expect(here.npmRuns()).toEqual(["ci", "ci"]);
});

test("a patch that is made already is fine; one that does not fit is said, with what to do", async () => {
  const here = clone();
  const left = join(here.folder, "node_modules", "left");
  npm(here, `mkdir -p ${left}; echo "export const a = 5;" > ${left}/index.js`);
  writeFileSync(join(here.folder, "patches", "left+1.0.0.patch"), patchTo("export const a = 3;"));
  expect(await here.setUp()).toEqual({
    code: 1,
    output: expect.stringContaining(
      "patches/left+1.0.0.patch does not fit the installed package. Remove node_modules and start again.",
    ) as string,
  });
  npm(here, `mkdir -p ${left}; printf 'export const a = 3;\\nexport const b = 2;\\n' > ${left}/index.js`);
  expect(await here.setUp()).toMatchObject({ code: 0 });
});
