/**
 * Owns: who is told that a part of the page, which is loaded when it is needed, could not be loaded. A newer build may
 * have taken its place on the server.
 */
const listeners = new Set<() => void>();

export function tellMissingPart(): void {
  for (const listener of listeners) listener();
}

/** Returns a function that ends the subscription. */
export function onMissingPart(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
