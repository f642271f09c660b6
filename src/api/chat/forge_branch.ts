import { createId } from "../../base/id.ts";
import { formatPlatformMessageId } from "../../domain/chat/platform.ts";
import {
  chooseDestination,
  type ForgeChange,
  getBranchConversation,
} from "../../domain/work/forge_branch.ts";
import { buildNewTask } from "../../domain/work/task.ts";
import { planTask } from "../../domain/work/task_plan.ts";
import type { IncomingMessage } from "../../platform/platform.ts";
import { insertInbound, takeMessage } from "../../store/chat/inbound.ts";
import { findByPlatformId } from "../../store/chat/platform_message.ts";
import { isDuplicate } from "../../store/db/database.ts";
import { record } from "../../store/events/journal.ts";
import { countRound, endRounds, listPushedBranches } from "../../store/work/forge_branch.ts";
import { insertTask } from "../../store/work/task.ts";
import { formatSenderActor, type PlatformRules } from "../call/platforms.ts";
import type { Deps } from "../call/services.ts";
import { composeContent } from "./inbound.ts";

type ForgeMessage = Pick<IncomingMessage, "id" | "chat" | "sender" | "text" | "excerpts">;

interface ForgeEvent {
  rules: PlatformRules;
  message: ForgeMessage;
  change: ForgeChange;
  /** How often an event of one branch goes back to its agent. */
  rounds: number;
}

/** Outcome of an event. `forge`: the event concerns no branch of the service. `over`: too many messages wait. */
type Returned =
  | { outcome: "queued" | "repeated"; message_id: string }
  | { outcome: "inbox" | "forge" | "over" };

/** Gives a failed check or a review to the agent whose branch it is about, or to the inbox after the last round. */
export async function returnToAgent(
  { db, clock, limits }: Deps<"db" | "clock" | "limits">,
  { rules, message, change, rounds }: ForgeEvent,
): Promise<Returned> {
  const candidates = await listPushedBranches(db, change);
  const branch = candidates.find((one) => chooseDestination(change, one, rounds) !== "forge");
  if (branch === undefined) return { outcome: "forge" };
  const now = clock.now();
  const platform_message_id = formatPlatformMessageId(message.chat, message.id);
  const earlier = await findByPlatformId(db, rules.name, platform_message_id);
  if (earlier !== null) return { outcome: "repeated", message_id: earlier.id };
  const session_key = getBranchConversation(branch);
  const actor = formatSenderActor(rules.name, message.sender.id);
  const { worker_id } = branch;
  if (chooseDestination(change, branch, rounds) === "inbox") {
    await db.write([
      ...endRounds(branch.id, message.text, now),
      record(now, {
        kind: "tree.rounds_over",
        session_key,
        worker_id,
        actor,
        data: { branch: branch.branch },
      }),
    ]);
    return { outcome: "inbox" };
  }
  const content = composeContent({ ...message, unreadable: [] });
  const row = {
    ...{ id: createId(), session_key, platform: rules.name, platform_message_id, content, received_at: now },
    ...{
      sender: message.sender.id,
      sender_name: message.sender.name,
      media: null,
      alone: true,
      reply_to: "",
    },
    ...{ is_direct: true, is_data: true, depth: 0 },
  };
  const keys = { session_key, message_id: row.id };
  const plan = planTask({ type: "immediate" }, now, "");
  const seed = {
    ...keys,
    id: createId(),
    worker_id,
    instruction: content,
    type: "immediate" as const,
    created_by: actor,
  };
  const task = { ...buildNewTask(seed, plan, now), due_at: plan.due_at, parent_task_id: null, depth: 0 };
  try {
    const { won } = await db.write([
      ...countRound(branch.id, rounds),
      ...insertInbound(row, limits.max_waiting_messages),
      record(now, { kind: "message.received", ...keys, actor }),
      ...takeMessage(row.id, "task", now),
      record(now, {
        kind: "message.routed",
        ...keys,
        data: { reason: `it is about branch ${branch.branch}` },
      }),
      ...insertTask(task),
      record(now, {
        kind: "task.created",
        ...{ ...keys, worker_id, task_id: task.id, actor },
        data: { type: task.type, status: task.status },
      }),
    ]);
    return won ? { outcome: "queued", message_id: row.id } : { outcome: "over" };
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    const stored = await findByPlatformId(db, rules.name, platform_message_id);
    return { outcome: "repeated", message_id: stored?.id ?? "" };
  }
}
