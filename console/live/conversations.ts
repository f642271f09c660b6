import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, buildQuery, load } from "./api.ts";
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
  const items = await load(api.GET("/api/conversations", { params: { query: buildQuery({}) } }));
  names.value = new Map(items.map(({ session_key, name }) => [session_key, name]));
}
