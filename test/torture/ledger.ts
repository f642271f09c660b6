const encoder = new TextEncoder();

/** A client's request and its result. Without a response its effect is unknown. */
export interface Entry {
  key: string;
  kind: "message" | "task" | "upload" | "cancel" | "backup";
  /** The text that identifies it in the database. */
  content: string;
  /** Whether it was sent under an idempotency key. */
  keyed: boolean;
  /** The number of attempts. */
  sent: number;
  outcome: "unknown" | "accepted" | "refused";
  /** The id that the server gave it. */
  id: string;
}

/**
 * Writes down every request before it is sent and after its response, so that the ledger survives any kill.
 */
export class ClientLedger {
  readonly entries: Entry[] = [];
  readonly #file: Deno.FsFile;

  constructor(path: string) {
    this.#file = Deno.openSync(path, { create: true, append: true });
  }

  begin(kind: Entry["kind"], content: string, keyed: boolean): Entry {
    const entry: Entry = {
      key: `${kind}-${this.entries.length}`,
      kind,
      content,
      keyed,
      sent: 0,
      outcome: "unknown",
      id: "",
    };
    this.entries.push(entry);
    return entry;
  }

  sending(entry: Entry): void {
    entry.sent++;
    this.#write(entry, "send");
  }

  answered(entry: Entry, outcome: "accepted" | "refused", id = ""): void {
    entry.outcome = outcome;
    entry.id = id;
    this.#write(entry, outcome);
  }

  accepted(kind: Entry["kind"]): string[] {
    return this.entries.filter((entry) => entry.kind === kind && entry.outcome === "accepted").map((entry) =>
      entry.id
    );
  }

  close(): void {
    this.#file.close();
  }

  #write(entry: Entry, what: string): void {
    const line = `${Date.now()} ${what} ${entry.key} ${entry.id} ${
      JSON.stringify(entry.content.slice(0, 80))
    }\n`;
    this.#file.writeSync(encoder.encode(line));
  }
}
