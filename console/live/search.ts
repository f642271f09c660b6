import { api, buildQuery, load, type Schemas } from "./api.ts";
import { hasScope } from "./session.ts";

export type SearchHit = Schemas["SearchHit"];

export interface FoundTexts {
  hits: readonly SearchHit[];
  /** Whether the service searched only the newest rows. */
  isPartial: boolean;
}

const SCOPES = ["read:messages", "read:executions", "read:memory"];

/** Finds messages, results and memory with these words. Finds nothing without a scope, or while the search is off. */
export async function searchTexts(words: string, signal: AbortSignal): Promise<FoundTexts> {
  if (!SCOPES.some(hasScope)) return { hits: [], isPartial: false };
  const { data, response } = await api.GET("/api/search", { params: { query: { q: words } }, signal });
  return { hits: data ?? [], isPartial: response.headers.get("warning")?.includes("partial") ?? false };
}

/** Reads the latest conversations, or none without the scope. */
export async function loadConversations(): Promise<readonly Schemas["Conversation"][]> {
  if (!hasScope("read:sessions")) return [];
  return await load(api.GET("/api/conversations", { params: { query: buildQuery({}) } }));
}
