import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, buildQuery, loadPage } from "./api.ts";
import { followEvents } from "./follow.ts";

const GATHER_MS = 500;

const names = signal<ReadonlyMap<string, string>>(new Map());
let following = false;

/** The name of a recent conversation, or "" while it is not known. */
export function useConversationName(sessionKey: string): string {
  useEffect(() => {
    if (following) return;
    following = true;
    followEvents(/^chat\./, GATHER_MS, read);
  }, []);
  return names.value.get(sessionKey) ?? "";
}

async function read(): Promise<void> {
  try {
    const params = { query: buildQuery({}) };
    const { items } = await loadPage(api.GET("/api/conversations", { params }));
    names.value = new Map(items.map(({ session_key, name }) => [session_key, name]));
  } catch {
    // The next event reads again.
  }
}
