/** Owns: a TCP proxy between a client and a server, which a test can break as networks and servers do. */
import { connect, createServer, type NetConnectOpts, type Socket } from "node:net";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

export type TcpProxy = {
  /** The port on 127.0.0.1, or on the address that was asked for. */
  readonly port: number;
  /** That are open. */
  readonly connections: number;
  /** Breaks connections and refuses new ones. Also ends the proxy. */
  cut(): Promise<void>;
  /** Breaks connections and accepts new ones. */
  drop(): void;
  /** Keeps connections open and accepts new ones, but passes nothing, like a frozen server. */
  hang(): Promise<void>;
  /** Present connections stay open, but pass nothing any more, as after a change of the network. New ones work. */
  strand(): void;
  /** Breaks connections; new ones go to another server. */
  lead(target: NetConnectOpts): void;
  /** Restores the service. After `hang`, the data sent meanwhile arrives. */
  mend(): Promise<void>;
};

type Pair = { readonly client: Socket; readonly server: Socket };

/**
 * @param address of this machine on which it listens
 * @param wanted the port; 0: any free one
 */
export async function startProxy(
  target: NetConnectOpts,
  address = "127.0.0.1",
  wanted = 0,
): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  /** Of `pairs`: nothing joins them again. */
  const stranded = new WeakSet<Pair>();
  let passing = true;
  let led = target;

  const join = ({ client, server }: Pair) => void client.pipe(server).pipe(client);
  const part = ({ client, server }: Pair) => {
    client.unpipe(server).pause();
    server.unpipe(client).pause();
  };
  const destroy = ({ client, server }: Pair) => {
    client.destroy();
    server.destroy();
  };

  const listener = createServer((client) => {
    const pair = { client, server: connect(led) };
    pairs.add(pair);
    for (const socket of [pair.client, pair.server]) {
      socket.on("error", () => destroy(pair));
      socket.on("close", () => {
        destroy(pair);
        pairs.delete(pair);
      });
    }
    if (passing) join(pair);
    else part(pair);
  });
  const listen = async (port: number) => {
    listener.listen(port, address);
    await once(listener, "listening");
  };
  const cut = async () => {
    if (!listener.listening) return;
    const closed = once(listener, "close");
    listener.close();
    for (const pair of pairs) destroy(pair);
    await closed;
  };

  await listen(wanted);
  const { port } = listener.address() as AddressInfo;
  return {
    port,
    get connections() {
      return pairs.size;
    },
    cut,
    drop: () => {
      for (const pair of pairs) destroy(pair);
    },
    hang() {
      passing = false;
      for (const pair of pairs) part(pair);
      return Promise.resolve();
    },
    strand() {
      for (const pair of pairs) {
        part(pair);
        stranded.add(pair);
      }
    },
    lead(other) {
      led = other;
      for (const pair of pairs) destroy(pair);
    },
    async mend() {
      if (!listener.listening) await listen(port);
      if (passing) return;
      passing = true;
      for (const pair of pairs) if (!stranded.has(pair)) join(pair);
    },
  };
}

/** The same database through a proxy. */
export async function proxyPostgres(url: string): Promise<{ proxy: TcpProxy; url: string }> {
  const parsed = new URL(url);
  const folder = parsed.searchParams.get("host");
  const proxy = await startProxy(
    folder === null
      ? { host: parsed.hostname, port: Number(parsed.port || 5432) }
      : { path: `${folder}/.s.PGSQL.${parsed.port || "5432"}` },
  );
  parsed.searchParams.delete("host");
  parsed.hostname = "127.0.0.1";
  parsed.port = String(proxy.port);
  return { proxy, url: parsed.href };
}
