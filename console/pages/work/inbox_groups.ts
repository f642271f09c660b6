import type { Schemas } from "../../live/api.ts";
import { buildItemKey } from "../../live/notifications.ts";
import { takeFirstLine } from "../../parts/format.ts";
import { stripCodes } from "../../parts/plain_text.ts";

export type InboxItem = Schemas["InboxItem"];

/** Items with the same cause, newest first. */
export interface InboxGroup {
  key: string;
  items: [InboxItem, ...InboxItem[]];
}

/** The kinds of items that can be dismissed: failures, which need no decision. */
export const FAILURES = [
  "run_failed",
  "task_stopped",
  "message_failed",
  "undelivered",
  "rounds_over",
] as const;

/** A state such as a paused worker cannot be dismissed, because it would not appear again later. */
export function isDismissible({ kind }: InboxItem): boolean {
  return (FAILURES as readonly string[]).includes(kind);
}

/** Returns the first line of what is wrong, without the internal name of the failure. */
export function formatDetail({ kind, detail }: InboxItem): string {
  const text = kind === "run_failed" ? detail.replace(/^\w+(: |$)/, "") : detail;
  return takeFirstLine(stripCodes(text));
}

/** Groups failures of the same worker with the same error. Figures in the error do not count, as they differ from run to run. */
export function groupItems(items: readonly InboxItem[]): InboxGroup[] {
  const groups = new Map<string, InboxGroup>();
  for (const item of items) {
    const key = isDismissible(item) ? buildGroupKey(item) : buildItemKey(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { key, items: [item] });
    else group.items.push(item);
  }
  return [...groups.values()];
}

function buildGroupKey(item: InboxItem): string {
  const { kind, detail, worker_id } = item;
  const failure = /^\w+/.exec(detail)?.[0] ?? "";
  const cause = formatDetail(item) || takeFirstLine(item.title);
  return [kind, worker_id, failure, cause.replaceAll(/\d+/g, "#")].join("\n");
}
