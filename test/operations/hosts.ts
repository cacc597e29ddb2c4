/**
 * Owns: hosts of a test: network namespaces, each with one cable to this machine. A program there reaches what listens on
 * the cable's end, and nothing else.
 */
import { execFile, execFileSync } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

export type Host = {
  /** This machine's end of the cable. */
  readonly gateway: string;
  /** The host's end. */
  readonly address: string;
  /** The command that starts a program on the host, before the program. */
  readonly under: readonly string[];
  /** Pulls the cable: packets are lost without a word. */
  readonly cut: () => Promise<void>;
  readonly mend: () => Promise<void>;
  readonly remove: () => Promise<void>;
};

/** Begins the name of each namespace of a test; then comes the id of the process that made it. */
const NAME = "bedrock-";

/** Whether this machine lets us make hosts: we are root, and have `ip`. */
export function canMakeHosts(): boolean {
  try {
    execFileSync("ip", ["netns", "add", `${NAME}${process.pid}-try`], { stdio: "ignore" });
    execFileSync("ip", ["netns", "delete", `${NAME}${process.pid}-try`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

let made = 0;

export async function makeHost(): Promise<Host> {
  const number = ++made;
  const name = `${NAME}${process.pid}-${number}`;
  // Of each process and number its own: 10.64.0.0/10 has room for four million pairs of addresses.
  const pair = (process.pid * 16 + number) % 2 ** 20;
  const end = (last: number): string =>
    `10.${64 + (pair >> 14)}.${(pair >> 6) & 255}.${(pair & 63) * 4 + last}`;
  const cable = `b${process.pid}-${number}`;
  const ip = (...args: string[]) => run("ip", args);
  await ip("netns", "add", name);
  await ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name);
  await ip("address", "add", `${end(1)}/30`, "dev", cable);
  await ip("link", "set", cable, "up");
  await ip("-n", name, "address", "add", `${end(2)}/30`, "dev", "eth0");
  await ip("-n", name, "link", "set", "eth0", "up");
  await ip("-n", name, "link", "set", "lo", "up");
  const turn = (state: "up" | "down") => async (): Promise<void> => {
    await ip("link", "set", cable, state);
  };
  return {
    gateway: end(1),
    address: end(2),
    under: ["nsenter", `--net=/run/netns/${name}`],
    cut: turn("down"),
    mend: turn("up"),
    // The cable goes with its end.
    remove: async () => {
      await ip("netns", "delete", name);
    },
  };
}
