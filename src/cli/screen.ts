// The terminal while a live view has it: alternate screen, no cursor, keys read one by one. However
// the process ends, the terminal is left as it was.

/** A terminal that is being drawn on. */
export class Screen {
  readonly #out: NodeJS.WriteStream;
  readonly #in: NodeJS.ReadStream;
  readonly #restore = () => this.close();
  #isOpen = false;

  /** @param onQuit is called at `q`, Ctrl-C and Ctrl-D. */
  constructor(out: NodeJS.WriteStream, input: NodeJS.ReadStream, onQuit: () => void) {
    this.#out = out;
    this.#in = input;
    if (!input.isTTY) return;
    input.on("data", (keys: Buffer) => {
      for (const key of keys.toString()) {
        if (key === "q" || key === "Q" || key === "\u0003" || key === "\u0004") onQuit();
      }
    });
  }

  /** Takes the terminal. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    process.once("exit", this.#restore);
    if (this.#in.isTTY) {
      this.#in.setRawMode(true);
      this.#in.resume();
    }
    this.#out.write("\x1b[?1049h\x1b[?25l\x1b[2J");
  }

  /** Draws lines from the top, over what was there. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const rows = lines.slice(0, this.#out.rows);
    this.#out.write(`\x1b[H${rows.map((line) => `${line}\x1b[K`).join("\r\n")}\x1b[J`);
  }

  /** Gives the terminal back. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.off("exit", this.#restore);
    this.#out.write("\x1b[?25h\x1b[?1049l");
    if (!this.#in.isTTY) return;
    this.#in.setRawMode(false);
    this.#in.pause();
  }
}
