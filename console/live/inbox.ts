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
  /^(execution\.|task\.|schedule\.|budget\.|message\.(failed|undelivered|resent|sent)|engine\.|worker\.|launcher\.|question\.|inbox\.|session\.cleared)/;

export function followInbox(): void {
  const schedule = followEvents(TOUCHES, GATHER_MS, read);
  setInterval(() => document.hidden || schedule(), REFRESH_MS);
}

let requests = 0;
let shown = 0;

/** Reads the inbox again after an action, so that the page shows the effect of the action with its notice. */
export async function refreshInbox(): Promise<void> {
  // The action has succeeded. The next event reads again.
  await read().catch(() => {});
}

async function read(): Promise<void> {
  const request = ++requests;
  const items = await load(api.GET("/api/inbox"));
  // A late answer would bring back failures that the user has dismissed or repeated.
  if (request < shown) return;
  shown = request;
  notifyNew(inbox.value, items);
  inbox.value = items;
}
