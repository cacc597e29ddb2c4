/** Owns: a browser that is measured: Chromium with the probe in each page, its processor slowed down, its memory. */
import { setTimeout as sleep } from "node:timers/promises";
import { chromium, type Browser, type BrowserContext, type CDPSession, type Page } from "playwright-core";
import { findChromium, NO_CHROMIUM, QUIET } from "../test/web/chromium.ts";
import { installProbe } from "../test/web/probe/install.ts";
import type { Place, Probe, Seen } from "../test/web/probe/probe.ts";

declare const probe: Probe;

/** Where the page is used as on a desk: the list beside the conversation. */
const VIEWPORT = { width: 1280, height: 800 };

/** Runs a measurement with a browser of its own; nothing is measured where there is none. */
export async function* withBrowser<T>(measure: (browser: Browser) => AsyncGenerator<T>): AsyncGenerator<T> {
  const program = findChromium();
  if (program === null) {
    console.log(NO_CHROMIUM);
    return;
  }
  const browser = await chromium.launch({ executablePath: program, args: [...QUIET] });
  try {
    yield* measure(browser);
  } finally {
    await browser.close();
  }
}

/** A person's browser without anything in it. */
export async function newProfile(browser: Browser): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: VIEWPORT });
  await installProbe(context);
  return context;
}

/** A tab, and the debugger's session with it. */
export class Tab {
  readonly page: Page;
  readonly #session: CDPSession;

  private constructor(page: Page, session: CDPSession) {
    this.page = page;
    this.#session = session;
  }

  static async open(context: BrowserContext): Promise<Tab> {
    const page = await context.newPage();
    return new Tab(page, await context.newCDPSession(page));
  }

  /** Milliseconds from the beginning of the navigation until a frame with this text in the conversation. */
  async goto(url: string, text: string): Promise<number> {
    await this.page.addInitScript((expected) => {
      Object.assign(globalThis, { expectedAtOpening: expected });
    }, text);
    const began = now();
    await this.page.goto(url, { waitUntil: "commit" });
    return (await this.seen()).paintedAt - began;
  }

  /** Looks for a text from the next frame on. */
  async expect(place: Place, text: string): Promise<void> {
    await this.page.evaluate(([where, what]) => probe.expect(where, what), [place, text] as const);
  }

  /** What became of the last `expect`. */
  seen(): Promise<Seen> {
    return this.page.evaluate(() => probe.seen());
  }

  /** Milliseconds from a key or a click, by the browser's own clock, until a frame with this text. */
  async after(input: () => Promise<void>, place: Place, text: string): Promise<number> {
    await this.expect(place, text);
    await input();
    const { inputAt, paintedAt } = await this.seen();
    return paintedAt - (inputAt ?? Number.NaN);
  }

  longTasks(): Promise<readonly number[]> {
    return this.page.evaluate(() => probe.longTasks());
  }

  keydowns(): Promise<readonly number[]> {
    return this.page.evaluate(() => probe.keydowns());
  }

  /** @param rate how many times slower the page's processor is */
  async slowDown(rate: number): Promise<void> {
    await this.#session.send("Emulation.setCPUThrottlingRate", { rate });
  }

  /** Milliseconds of the processor that the page's main thread has taken since the first call. */
  async busyMs(): Promise<number> {
    await this.#session.send("Performance.enable", { timeDomain: "threadTicks" });
    const { metrics } = await this.#session.send("Performance.getMetrics");
    return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN) * 1_000;
  }

  /** Bytes that are in use after the garbage was collected: objects of scripts, and of the document. */
  async heap(): Promise<number> {
    // What is freed by the first collection may hold what the second one frees.
    for (let n = 0; n < 3; n++) {
      await this.#session.send("HeapProfiler.collectGarbage");
      await sleep(200);
    }
    const { usedSize, ...more } = await this.#session.send("Runtime.getHeapUsage");
    const { embedderHeapUsedSize = 0 } = more as { readonly embedderHeapUsedSize?: number };
    return usedSize + embedderHeapUsedSize;
  }
}

/** The same clock as the probe's: milliseconds since the epoch, with fractions. */
export const now = (): number => performance.timeOrigin + performance.now();
