import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, askPage } from "./api.ts";
import { onEvent, onReset } from "./events.ts";

// Names of the latest; an older one is called by its key.
const NAMED_MAX = 100;
const GATHER_MS = 500;

const names = signal<ReadonlyMap<string, string>>(new Map());
let following = false;

/** What a conversation is called, or "" while that is not known. */
export function useConversationName(sessionKey: string): string {
  useEffect(follow, []);
  return names.value.get(sessionKey) ?? "";
}

// Read when a page first shows a conversation by its name, and again when one gets another.
function follow(): void {
  if (following) return;
  following = true;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = () => timer ??= setTimeout(() => (timer = undefined, void read()), GATHER_MS);
  onEvent(({ kind }) => kind.startsWith("chat.") && soon());
  onReset(soon);
  void read();
}

async function read(): Promise<void> {
  try {
    const params = { query: { page_size: NAMED_MAX } };
    const { items } = await askPage(api.GET("/api/conversations", { params }));
    names.value = new Map(items.map(({ session_key, name }) => [session_key, name]));
  } catch {
    // Read again with the next event.
  }
}
