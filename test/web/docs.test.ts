/** The API's reference at `/docs`, as a person reads and tries it. It needs nothing but the API. */
import { expect } from "vitest";
import { readPage } from "../../api/page-files.ts";
import { buildPage } from "../../local/build-web.mjs";
import { serveApi, startApi } from "../api/support.ts";
import { axeFindings } from "./axe.ts";
import { browserTest, hasNoBrowser } from "./browser.ts";

const TOKEN = "the-token-of-this-test";

const test = browserTest
  .extend("url", { scope: "file" }, async () => {
    expect(await buildPage(() => undefined)).toBeNull();
    const databaseUrl = "postgres://nobody@127.0.0.1:1/none";
    return (await serveApi(await startApi({ databaseUrl, page: readPage(), apiToken: TOKEN }))).url;
  })
  .skipIf(hasNoBrowser);

test("the reference shows every operation of the contract, without a token", async ({ visitor, url }) => {
  const contract = (await (await fetch(`${url}/openapi.json`)).json()) as {
    readonly paths: { readonly [path: string]: { readonly [method: string]: { readonly summary: string } } };
  };
  const operations = Object.entries(contract.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { summary }]) => `${method.toUpperCase()} ${path} ${summary}`),
  );
  const page = await visitor.open(`${url}/docs`);
  const shown = page.locator(".opblock-summary-control");
  await expect.poll(() => shown.count()).toBe(operations.length);
  // Long paths may be broken at each part, by characters without a width.
  const texts = (await shown.allInnerTexts()).map((text) =>
    text.replaceAll("\u200b", "").replaceAll(/\s+/g, " "),
  );
  expect(texts.sort()).toEqual(operations.sort());
  expect(await page.title()).toBe("Bedrock: the API");
});

test("a call can be tried with the token, which is nowhere kept", async ({ visitor, url }) => {
  visitor.tolerate(/status of 401/);
  const page = await visitor.open(`${url}/docs#/Models/listModels`);
  const operation = page.locator("#operations-Models-listModels");
  await operation.getByRole("button", { name: "Try it out" }).click();
  const execute = operation.getByRole("button", { name: "Execute" });
  await execute.click();
  await operation.getByText("Send the API token").first().waitFor();

  await page.getByRole("button", { name: "Authorize" }).first().click();
  const dialog = page.locator(".dialog-ux");
  await dialog.getByRole("textbox").fill(TOKEN);
  await dialog.getByRole("button", { name: "Apply credentials" }).click();
  await dialog.getByRole("button", { name: "Close" }).click();
  await execute.click();
  await operation.getByText("contextWindow").first().waitFor();
  expect(page.url()).not.toContain(TOKEN);
  const kept = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]));
  expect(kept).not.toContain(TOKEN);
});

test.for(["light", "dark"] as const)(
  "its colours can be read in the %s theme",
  async (colorScheme, { visitor, url }) => {
    const page = await visitor.open(`${url}/docs`);
    await page.emulateMedia({ colorScheme });
    await page.locator(".opblock-summary-control").first().click();
    await page.locator(".opblock-body").first().waitFor();
    // How Swagger UI nests its buttons and headings is not ours to change.
    expect((await axeFindings(page)).filter((finding) => finding.startsWith("color-contrast"))).toEqual([]);
  },
);
