/** The build of the page, on a small page of its own: when it builds, what it leaves, and what it says. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readPage, type PageFiles } from "../../api/page-files.ts";
import { ROOT } from "./npm-start.ts";
import { temporaryFolder } from "./support.ts";

type Run = { readonly code: number; readonly output: string };
type Clone = {
  readonly folder: string;
  readonly write: (name: string, text: string) => void;
  readonly build: () => Promise<Run>;
  readonly builds: () => string[];
  readonly files: () => PageFiles;
};

const html = (name: string) =>
  `<head><link href="/assets/${name}.css" /><script src="/assets/${name}.js"></script></head>`;

function clone(): Clone {
  const folder = temporaryFolder();
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  for (const name of ["local", "web"]) mkdirSync(join(folder, name));
  for (const name of ["local/build-web.mjs", "local/sources.mjs", "package-lock.json"])
    cpSync(join(ROOT, name), join(folder, name));
  for (const name of ["icon.svg", "icon-waiting.svg", "icon-maskable.svg", "manifest.webmanifest"])
    cpSync(join(ROOT, "web", name), join(folder, "web", name));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  write("web/index.html", html("main"));
  write("web/docs.html", html("docs"));
  write("web/docs.ts", "console.log('docs');");
  for (const name of ["style.css", "docs.css"]) write(`web/${name}`, "p { margin: 0 }");
  write("web/main.tsx", "console.log(STREAM_WORKER_URL, process.env.NODE_ENV); void import('./later.ts');");
  write("web/later.ts", "export const later = 'loaded later';");
  write("web/stream-worker.ts", "console.log('worker');");
  return {
    folder,
    write,
    build: () =>
      new Promise((resolve) => {
        const program = join(folder, "local", "build-web.mjs");
        const child = execFile(process.execPath, [program], (_, stdout, stderr) =>
          resolve({ code: child.exitCode ?? 1, output: stdout + stderr }),
        );
      }),
    builds: () => readdirSync(join(folder, "build", "web")).filter((name) => name !== "current"),
    files: () => readPage(join(folder, "build", "web")) ?? new Map(),
  };
}

const DONE = { code: 0, output: "Building the page …\n" };
const textOf = (files: PageFiles, name: RegExp): string => {
  const [found] = [...files].filter(([path]) => name.test(path));
  return found === undefined ? "" : Buffer.from(found[1].content).toString();
};

test("the page is built once per content of its sources, and the last two builds are kept", async () => {
  const { build, builds, files, write } = clone();
  expect(await build()).toEqual(DONE);
  const first = files();
  expect(await build()).toEqual({ code: 0, output: "" });
  for (const text of ["console.log(2);", "console.log(3);", "console.log(4);"]) {
    write("web/main.tsx", text);
    expect(await build()).toEqual(DONE);
  }
  expect(builds()).toHaveLength(2);
  expect(textOf(files(), /^assets\/main-.*\.js$/)).toContain("console.log(4)");
  // The names of what did not change stay, so that browsers keep it.
  const namesOf = (page: PageFiles, name: string) => [...page.keys()].filter((path) => path.includes(name));
  expect(namesOf(files(), "docs-")).toEqual(namesOf(first, "docs-"));
  expect(namesOf(files(), "main-")).not.toEqual(namesOf(first, "main-"));
});

test("the page knows its files by names with a digest: assets, chunks and workers", async () => {
  const { build, files } = clone();
  expect(await build()).toEqual(DONE);
  const page = files();
  const index = textOf(page, /^index\.html$/);
  const [, script = ""] = /src="\/(assets\/main-\w{8}\.js)"/.exec(index) ?? [];
  const [, style = ""] = /href="\/(assets\/main-\w{8}\.css)"/.exec(index) ?? [];
  expect(page.has(style)).toBe(true);
  const code = Buffer.from(page.get(script)?.content ?? []).toString();
  const [, worker = ""] = /"\/(assets\/stream-worker-\w{8}\.js)"/.exec(code) ?? [];
  expect(page.has(worker)).toBe(true);
  expect(code).toContain('"production"');
  const [, chunk = ""] = /import\("\.\/(later-\w{8}\.js)"\)/.exec(code) ?? [];
  expect(page.has(`assets/${chunk}`)).toBe(true);
  for (const name of ["icon-192.png", "icon.svg", "manifest.webmanifest"])
    expect(page.has(name), name).toBe(true);
});

test("a build that fails says where, and leaves the one before", async () => {
  const { build, builds, files, write } = clone();
  expect(await build()).toEqual(DONE);
  const before = files();
  write("web/main.tsx", "\nimport './nothing.ts';");
  const failed = await build();
  expect(failed.code).toBe(1);
  expect(failed.output).toContain(
    'The page could not be built: web/main.tsx:2:8: Could not resolve "./nothing.ts"',
  );
  expect(failed.output).not.toMatch(/^\s+at /m);
  expect(files()).toEqual(before);
  expect(builds()).toHaveLength(1);
  write("web/main.tsx", "");
  write("web/index.html", html("other"));
  expect((await build()).output).toContain('web/index.html does not load "/assets/main.js".');
});

test("what a killed build has left is removed later", async () => {
  const { folder, build, builds } = clone();
  const left = join(folder, "build", "web", ".left");
  mkdirSync(left, { recursive: true });
  utimesSync(left, 0, 0);
  mkdirSync(join(folder, "build", "web", ".under-way"));
  expect(await build()).toEqual(DONE);
  expect(builds().filter((name) => name.startsWith("."))).toEqual([".under-way"]);
});

test("builds at the same time do not disturb each other", async () => {
  const { build, builds, files } = clone();
  const runs = await Promise.all([build(), build(), build()]);
  expect(runs.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(builds()).toHaveLength(1);
  expect(textOf(files(), /^index\.html$/)).toContain("/assets/main-");
});
