import { signal } from "@preact/signals";
import { api, load, type Schemas } from "./api.ts";
import { followEvents } from "./follow.ts";
import { notifyNew } from "./notifications.ts";

/** Items that need the user's attention, newest first, or undefined before the first answer. */
export const inbox = signal<readonly Schemas["InboxItem"][] | undefined>(undefined);

const GATHER_MS = 500;
// Reads the inbox again regularly, because items leave it after a day without an event.
const REFRESH_MS = 60_000;
const TOUCHES =
  /^(execution\.|task\.|schedule\.|budget\.|message\.(failed|undelivered|resent|sent)|engine\.|worker\.|question\.|inbox\.|session\.cleared)/;

export function followInbox(): void {
  const schedule = followEvents(TOUCHES, GATHER_MS, read);
  setInterval(() => document.hidden || schedule(), REFRESH_MS);
}

async function read(): Promise<void> {
  const items = await load(api.GET("/api/inbox"));
  notifyNew(inbox.value, items);
  inbox.value = items;
}
