/** Owns: how tests wait. Nothing here has a time limit of its own: the test's limit applies. */

/** Asks again and again until the answer is neither null nor false. */
export async function until<T>(ask: () => T | null | false | Promise<T | null | false>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== false) return answer;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A promise and the handles of it. */
export function deferred<T>(): {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
} {
  let resolve: (value: T) => void = () => undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<T>((onValue, onReason) => {
    resolve = onValue;
    reject = onReason;
  });
  return { promise, resolve, reject };
}
