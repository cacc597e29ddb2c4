/** Owns: the ports that processes listen on, by the kernel's own tables. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export type Port = {
  readonly protocol: "tcp" | "udp";
  readonly ip: string;
  readonly port: number;
  readonly pid: number;
  /** Command line of the process. */
  readonly command: string;
};

const TABLES = { tcp: "tcp", tcp6: "tcp", udp: "udp", udp6: "udp" } as const;
/** The kernel's codes of a listening TCP socket and of an unconnected UDP socket. */
const OPEN = { tcp: "0A", udp: "07" } as const;

/** Every port that one of the processes listens on, once. */
export function portsOf(pids: readonly number[]): readonly Port[] {
  const sockets = new Map(pids.flatMap((pid) => socketsOf(pid).map((inode) => [inode, pid])));
  return Object.entries(TABLES).flatMap(([table, protocol]) =>
    readFileSync(`/proc/net/${table}`, "utf8")
      .split("\n")
      .slice(1)
      .flatMap((line): readonly Port[] => {
        const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
        const pid = sockets.get(inode);
        if (pid === undefined || state !== OPEN[protocol]) return [];
        const [ip = "", port = ""] = local.split(":");
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return [{ protocol, ip: addressOf(ip), port: Number.parseInt(port, 16), pid, command }];
      }),
  );
}

function socketsOf(pid: number): readonly string[] {
  return descriptorsOf(pid).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
    } catch {
      // The descriptor was closed meanwhile.
      return [];
    }
  });
}

function descriptorsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    // The process has ended meanwhile. Until its parent asks for it, only root is shown that it has none.
    return [];
  }
}

/** The kernel writes each four bytes of an address as a number in this machine's byte order, low byte first. */
function addressOf(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => [...Buffer.from(word, "hex")].reverse());
  if (bytes.length === 4) return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, n) =>
    Buffer.from(bytes.slice(2 * n, 2 * n + 2)).toString("hex"),
  );
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}
