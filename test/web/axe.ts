/** Owns: what axe finds on a page as it is now. */
import axe, { type AxeResults } from "axe-core";
import type { Page } from "playwright-core";

/** One line for each element that breaks a rule; none on a page that is accessible as far as a program can tell. */
export async function axeFindings(page: Page): Promise<readonly string[]> {
  // The page's policy forbids a script element, but not what the debugger evaluates.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>("axe.run()");
  return violations.flatMap(({ id, impact, help, nodes }) =>
    nodes.map(({ target, failureSummary = "" }) => {
      const summary = failureSummary.replaceAll(/\s+/g, " ");
      return `${id} (${String(impact)}): ${help}: ${target.join(" ")}: ${summary}`;
    }),
  );
}
