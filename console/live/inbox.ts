import { signal } from "@preact/signals";
import { api, ask, type Schemas } from "./api.ts";
import { onEvent, onReset } from "./events.ts";
import { tellNew } from "./notifications.ts";

/** Something that needs a person. */
export type InboxItem = Schemas["InboxItem"];

/** What needs a person, newest first, or undefined before the first answer. */
export const inbox = signal<readonly InboxItem[] | undefined>(undefined);

const GATHER_MS = 500;
// What is a day old is left out, and no event says so.
const AGAIN_MS = 60_000;
const TOUCHES =
  /^(execution\.|task\.|schedule\.|budget\.|message\.(failed|undelivered|resent|sent)|engine\.|worker\.|question\.|session\.cleared)/;

/** Keeps `inbox` as it is on the service. */
export function followInbox(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = () => timer ??= setTimeout(() => (timer = undefined, void read()), GATHER_MS);
  onEvent(({ kind }) => TOUCHES.test(kind) && soon());
  onReset(soon);
  setInterval(() => document.hidden || soon(), AGAIN_MS);
  void read();
}

async function read(): Promise<void> {
  try {
    const items = await ask(api.GET("/api/inbox"));
    tellNew(inbox.value, items);
    inbox.value = items;
  } catch {
    // Read again with the next event, or in a minute.
  }
}
