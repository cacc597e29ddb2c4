/**
 * Owns: a tool's output on its way to whoever watches: batched, and bounded to RATE a call, beyond which a gap is
 * marked (architecture, rule 9). Live only: what is cut here is bounded and kept elsewhere, by the tool.
 */

export type OutputStream = "stdout" | "stderr";

export type LiveOutput = {
  readonly push: (stream: OutputStream, text: string) => void;
  /** Publishes what is left; nothing may be pushed afterwards. */
  readonly close: () => Promise<void>;
};

const INTERVAL_MS = 30;
/** Characters a second. */
const RATE = 64 * 1024;
const GAP = "\n[… output too fast to show …]\n";

type Piece = { readonly stream: OutputStream; text: string };

export function createLiveOutput(publish: (stream: OutputStream, text: string) => Promise<void>): LiveOutput {
  let waiting: Piece[] = [];
  let timer: NodeJS.Timeout | null = null;
  let publishing: Promise<void> = Promise.resolve();
  let windowStart = performance.now();
  let inWindow = 0;
  let hasGap = false;

  const add = (stream: OutputStream, text: string): void => {
    const last = waiting.at(-1);
    if (last?.stream === stream) last.text += text;
    else waiting.push({ stream, text });
    timer ??= setTimeout(flush, INTERVAL_MS);
  };

  const flush = (): void => {
    timer = null;
    const pieces = waiting;
    waiting = [];
    publishing = publishing.then(async () => {
      for (const { stream, text } of pieces) await publish(stream, text).catch(() => undefined);
    });
  };

  return {
    push(stream, text) {
      const now = performance.now();
      if (now - windowStart >= 1_000) {
        windowStart = now;
        inWindow = 0;
        hasGap = false;
      }
      const room = RATE - inWindow;
      inWindow += Math.min(text.length, room);
      if (room > 0) add(stream, text.length <= room ? text : text.slice(0, room).toWellFormed());
      if (text.length > room && !hasGap) {
        hasGap = true;
        add(stream, GAP);
      }
    },
    close() {
      if (timer !== null) clearTimeout(timer);
      flush();
      return publishing;
    },
  };
}
