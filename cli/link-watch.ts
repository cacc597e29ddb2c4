/** Owns: what a command says of its connection to the server: that it is lost, that it is back, that it stays away. */
import type { Link } from "../client/index.ts";
import type { Terminal } from "./terminal.ts";

export class LinkWatch {
  readonly #terminal: Terminal;
  readonly #patience: number | null;
  readonly #giveUp: () => void;
  #isLost = false;
  #timer: NodeJS.Timeout | null = null;

  /**
   * @param patience milliseconds for which the server may be away; null: for ever
   * @param giveUp called when it was away for longer
   */
  constructor(terminal: Terminal, patience: number | null, giveUp: () => void) {
    this.#terminal = terminal;
    this.#patience = patience;
    this.#giveUp = giveUp;
  }

  see(link: Link): void {
    switch (link.kind) {
      case "connecting":
      case "unauthorized":
        return;
      case "connected":
        if (!this.#isLost) return;
        this.end();
        this.#isLost = false;
        this.#terminal.tell("Connected again.", "dim");
        return;
      case "lost":
        if (this.#isLost) return;
        this.#isLost = true;
        this.#terminal.tell(`${link.reason} Trying again …`, "yellow");
        if (this.#patience === null) return;
        this.#timer = setTimeout(() => {
          this.#terminal.tell("The server is still away. What it does goes on.", "red");
          this.#giveUp();
        }, this.#patience);
    }
  }

  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
