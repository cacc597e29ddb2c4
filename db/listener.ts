/** Owns: a connection of its own that listens to NOTIFY channels and reconnects by itself. */
import type { Channel } from "./channels.ts";
import { openClient } from "./connect.ts";

export type Listening = {
  /** Resolves when all channels are listened to for the first time; waits as long as the database is down. */
  readonly ready: Promise<void>;
  readonly close: () => Promise<void>;
};

/**
 * Listens at once.
 *
 * @param channels what to do with a payload of each channel; must not throw.
 * @param onReconnect the connection was lost and is back: notifications in between are lost.
 */
export function listenTo(
  url: string,
  applicationName: string,
  channels: { readonly [C in Channel]?: (payload: string) => void },
  onReconnect: () => void,
): Listening {
  const client = openClient(url, applicationName);
  const subscribe = (channel: string, onPayload: (payload: string) => void) =>
    new Promise<void>((resolve) => {
      let connections = 0;
      const onListening = () => {
        connections += 1;
        resolve();
        // Each channel comes back by itself, so this may be called twice. A second catch-up is harmless.
        if (connections > 1) onReconnect();
      };
      // If the first attempt fails, this promise rejects, but the driver repeats the attempt until it succeeds.
      client.listen(channel, onPayload, onListening).catch(() => undefined);
    });
  return {
    ready: Promise.all(Object.entries(channels).map(([name, receive]) => subscribe(name, receive))).then(
      () => undefined,
    ),
    close: () => client.end({ timeout: 1 }),
  };
}
