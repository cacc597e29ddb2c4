/** Owns: what goes wrong in shared workers, which Playwright does not show: the debugger's own protocol does. */
import type { Browser } from "playwright-core";

type Message = {
  readonly method?: string;
  readonly params?: {
    readonly type?: string;
    readonly args?: readonly { readonly value?: string | number | boolean; readonly description?: string }[];
    readonly exceptionDetails?: {
      readonly text: string;
      readonly exception?: { readonly description?: string };
    };
    readonly entry?: { readonly level: string; readonly text: string; readonly url?: string };
  };
};

/** Reports errors on the console of any shared worker, and errors that it does not handle, from its first line on. */
export async function watchSharedWorkers(browser: Browser, report: (problem: string) => void): Promise<void> {
  const debug = await browser.newBrowserCDPSession();
  const attach = async (targetId: string): Promise<void> => {
    const { sessionId } = await debug.send("Target.attachToTarget", { targetId, flatten: false });
    for (const [id, method] of ["Runtime.enable", "Log.enable"].entries()) {
      await debug.send("Target.sendMessageToTarget", { sessionId, message: JSON.stringify({ id, method }) });
    }
  };
  debug.on("Target.targetCreated", ({ targetInfo: { type, targetId } }) => {
    // A worker that has ended meanwhile has nothing more to say.
    if (type === "shared_worker") attach(targetId).catch(() => undefined);
  });
  debug.on("Target.receivedMessageFromTarget", ({ message }) => {
    const problem = problemIn(JSON.parse(message) as Message);
    if (problem !== null) report(problem);
  });
  await debug.send("Target.setDiscoverTargets", { discover: true, filter: [{ type: "shared_worker" }] });
}

function problemIn({
  method,
  params: { type, args = [], exceptionDetails, entry } = {},
}: Message): string | null {
  if (method === "Runtime.consoleAPICalled" && type === "error") {
    return `console: ${args.map(({ value, description }) => String(value ?? description)).join(" ")} (shared worker)`;
  }
  if (method === "Runtime.exceptionThrown" && exceptionDetails !== undefined) {
    return `error: ${exceptionDetails.exception?.description ?? exceptionDetails.text} (shared worker)`;
  }
  if (method === "Log.entryAdded" && entry?.level === "error") {
    return `console: ${entry.text} (shared worker, ${entry.url ?? ""})`;
  }
  return null;
}
