/** The page as `npm start` serves it. */
import { expect } from "vitest";
import { startProduct } from "../support/product.ts";
import { browserTest, hasNoBrowser } from "./browser.ts";

const SLOW = 180_000;

const test = browserTest
  .extend("product", { scope: "file" }, async ({}, { onCleanup }) => {
    const product = await startProduct();
    onCleanup(product.stop);
    return product;
  })
  .skipIf(hasNoBrowser);

test(
  "the address that `npm start` prints shows the page, and a path of the page does, too",
  async ({ visitor, product }) => {
    const page = await visitor.open(product.url);
    await page.getByRole("main").waitFor();
    expect(await page.title()).toContain("Bedrock");
    const other = await visitor.open(`${product.url}/new`);
    await other.getByRole("main").waitFor();
  },
  SLOW,
);
