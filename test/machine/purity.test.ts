/** The machine is pure: it imports only itself, and nothing in it can reach a clock, chance or the outside. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, test } from "vitest";

const FOLDER = fileURLToPath(new URL("../../machine/", import.meta.url));
const FILES = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".ts"),
);

/** Globals that would make a transition depend on more than its arguments. `new Date(at)` is arithmetic. */
const IMPURE = [
  "process",
  "globalThis",
  "global",
  "performance",
  "crypto",
  "fetch",
  "console",
  "require",
  "eval",
  "Function",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "queueMicrotask",
  "Promise",
  "Intl",
  "WeakRef",
];

type Findings = { readonly imports: string[]; readonly impure: string[] };

/** Module specifiers and impure expressions of a source text. */
function inspect(name: string, text: string): Findings {
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const found: Findings = { imports: [], impure: [] };
  const visit = (node: ts.Node): void => {
    if (
      (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) &&
      node.moduleSpecifier !== undefined
    ) {
      found.imports.push((node.moduleSpecifier as ts.StringLiteral).text);
    }
    if (ts.isImportTypeNode(node)) found.imports.push(node.argument.getText().slice(1, -1));
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      found.imports.push(node.arguments[0]?.getText() ?? "");
    }
    if (ts.isNewExpression(node) && node.getText().startsWith("new Date") && !node.arguments?.length) {
      found.impure.push("new Date()");
    }
    if (ts.isCallExpression(node) && node.expression.getText() === "Date") found.impure.push("Date()");
    if (ts.isPropertyAccessExpression(node) && ["Date.now", "Math.random"].includes(node.getText())) {
      found.impure.push(node.getText());
    }
    if (ts.isMetaProperty(node) || ts.isAwaitExpression(node)) found.impure.push(node.getText());
    if (ts.isIdentifier(node) && IMPURE.includes(node.text) && isFree(node)) found.impure.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** True for a free name; false for the name of a property. */
function isFree(node: ts.Identifier): boolean {
  const { parent } = node;
  const isProperty = ts.isPropertyAccessExpression(parent) && parent.name === node;
  return !isProperty && !ts.isPropertyAssignment(parent) && !ts.isPropertySignature(parent);
}

describe("machine/", () => {
  test.for(FILES)("%s imports only the machine, and is pure", (name) => {
    const { imports, impure } = inspect(name, readFileSync(`${FOLDER}${name}`, "utf8"));
    for (const specifier of imports) {
      const target = new URL(specifier, `file://${FOLDER}${name}`);
      expect(specifier).toMatch(/^\.\.?\//u);
      expect(fileURLToPath(target).startsWith(FOLDER), `${specifier} is in machine/`).toBe(true);
    }
    expect(impure).toEqual([]);
  });

  test("has files to inspect", () => {
    expect(FILES).toContain("transition.ts");
  });
});

test("the inspection finds every import and every impure expression", () => {
  const text = `
    import a from "node:fs";
    import "./effect.ts";
    export * from "zod";
    type T = import("ws").WebSocket;
    const f = () => import("x");
    Date.now(); new Date(); new Date(1); Math.random(); Date();
    process.env; setTimeout(f); ({ process: 1 }).process;
  `;
  expect(inspect("x.ts", text)).toEqual({
    imports: ["node:fs", "./effect.ts", "zod", "ws", '"x"'],
    impure: ["Date.now", "new Date()", "Math.random", "Date()", "process", "setTimeout"],
  });
});
