import { api, load } from "../../live/api.ts";
import { refreshInbox } from "../../live/inbox.ts";
import { hasScope } from "../../live/session.ts";
import { pluralize } from "../../parts/format.ts";
import { showToast } from "../../parts/toast.tsx";
import { applyToEach } from "./bulk_bar.tsx";
import { type InboxItem, isDismissible } from "./inbox_groups.ts";

const HOUR_MS = 3_600_000;

export const SNOOZES: readonly [hours: number, name: string][] = [
  [1, "For 1 hour"],
  [24, "For 1 day"],
  [7 * 24, "For 1 week"],
];

export function canDismiss(): boolean {
  return hasScope("write:tasks");
}

/** Removes failures from the inbox. */
export async function dismissItems(items: readonly InboxItem[]): Promise<void> {
  const chosen = items.filter(isDismissible);
  await hideEach(chosen, null);
  showToast(chosen.length === 1 ? "Dismissed" : `${pluralize(chosen.length, "item")} dismissed`);
}

/** Hides items for some hours. */
export async function snoozeItems(items: readonly InboxItem[], hours: number): Promise<void> {
  await hideEach(items, Date.now() + hours * HOUR_MS);
  showToast(items.length === 1 ? "Snoozed" : `${pluralize(items.length, "item")} snoozed`);
}

async function hideEach(items: readonly InboxItem[], until: number | null): Promise<void> {
  for (const { kind, id } of items) {
    await load(
      api.POST("/api/inbox/{kind}/{id}/dismiss", { params: { path: { kind, id } }, body: { until } }),
    );
  }
  await refreshInbox();
}

/** Runs the tasks of failed runs again: one immediately, several after a question. */
export async function retryItems(items: readonly InboxItem[]): Promise<void> {
  const failed = items.filter(({ kind }) => kind === "run_failed");
  const retry = ({ execution_id: id }: InboxItem) =>
    load(api.POST("/api/executions/{id}/retry", { params: { path: { id } }, body: {} }));
  const [first] = failed;
  if (first !== undefined && failed.length === 1) {
    await retry(first);
    await refreshInbox();
    return showToast("Run started again");
  }
  const count = failed.length;
  await applyToEach(
    failed,
    {
      title: `Run ${pluralize(count, "failed run")} again?`,
      text: "Each run gets a new task with the same instruction, and is charged again.",
      action: `Run ${count} again`,
    },
    retry,
    async (started, all) => {
      await refreshInbox();
      return `Started ${started} of ${all} runs again`;
    },
  );
}
