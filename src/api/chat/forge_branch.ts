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
import { isDuplicate, type Statement } from "../../store/db/database.ts";
import { record } from "../../store/events/journal.ts";
import { countRound, endRounds, listPushedBranches } from "../../store/work/forge_branch.ts";
import { insertTask } from "../../store/work/task.ts";
import { formatSenderActor, type PlatformRules } from "../call/platforms.ts";
import type { Deps } from "../call/services.ts";
import { composeContent } from "./inbound.ts";

/** An event of a forge as a message. */
export type ForgeMessage = Pick<IncomingMessage, "id" | "chat" | "sender" | "text" | "excerpts">;

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
  event: ForgeEvent,
): Promise<Returned> {
  const { rules, message, change, rounds } = event;
  const found = (await listPushedBranches(db, change))
    .map((branch) => ({ branch, destination: chooseDestination(change, branch, rounds) }))
    .find(({ destination }) => destination !== "forge");
  if (found === undefined) return { outcome: "forge" };
  const platformMessageId = formatPlatformMessageId(message.chat, message.id);
  const findEarlier = () => findByPlatformId(db, rules.name, platformMessageId);
  const earlier = await findEarlier();
  if (earlier !== null) return { outcome: "repeated", message_id: earlier.id };
  const { branch, destination } = found;
  const now = clock.now();
  if (destination === "inbox") {
    await db.write(buildInboxEntry(event, branch, now));
    return { outcome: "inbox" };
  }
  const id = createId();
  try {
    const { won } = await db.write([
      ...countRound(branch.id, rounds),
      ...buildMessage(event, branch, { id, platformMessageId, maxWaiting: limits.max_waiting_messages }, now),
      ...buildTask(event, branch, id, now),
    ]);
    return won ? { outcome: "queued", message_id: id } : { outcome: "over" };
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    return { outcome: "repeated", message_id: (await findEarlier())?.id ?? "" };
  }
}

type Branch = Awaited<ReturnType<typeof listPushedBranches>>[number];

function buildInboxEntry({ rules, message }: ForgeEvent, branch: Branch, now: number): Statement[] {
  return [
    ...endRounds(branch.id, message.text, now),
    record(now, {
      kind: "tree.rounds_over",
      session_key: getBranchConversation(branch),
      worker_id: branch.worker_id,
      actor: formatSenderActor(rules.name, message.sender.id),
      data: { branch: branch.branch },
    }),
  ];
}

// The message is routed already: its worker is the one whose branch it is about.
function buildMessage(
  { rules, message }: ForgeEvent,
  branch: Branch,
  { id, platformMessageId, maxWaiting }: { id: string; platformMessageId: string; maxWaiting: number },
  now: number,
): Statement[] {
  const { sender } = message;
  const session_key = getBranchConversation(branch);
  const keys = { session_key, message_id: id };
  const row = {
    ...{ id, session_key, platform: rules.name, platform_message_id: platformMessageId, received_at: now },
    ...{
      sender: sender.id,
      sender_name: sender.name,
      content: composeContent({ ...message, unreadable: [] }),
    },
    ...{ media: null, alone: true, reply_to: "", is_direct: true, is_data: true, depth: 0 },
  };
  return [
    ...insertInbound(row, maxWaiting),
    record(now, { kind: "message.received", ...keys, actor: formatSenderActor(rules.name, sender.id) }),
    ...takeMessage(id, "task", now),
    record(now, { kind: "message.routed", ...keys, data: { reason: `it is about branch ${branch.branch}` } }),
  ];
}

function buildTask(
  { rules, message }: ForgeEvent,
  branch: Branch,
  message_id: string,
  now: number,
): Statement[] {
  const { worker_id } = branch;
  const keys = { session_key: getBranchConversation(branch), message_id, worker_id };
  const actor = formatSenderActor(rules.name, message.sender.id);
  const plan = planTask({ type: "immediate" }, now, "");
  const instruction = composeContent({ ...message, unreadable: [] });
  const seed = { ...keys, id: createId(), instruction, type: "immediate" as const, created_by: actor };
  const task = { ...buildNewTask(seed, plan, now), due_at: plan.due_at, parent_task_id: null, depth: 0 };
  const data = { type: task.type, status: task.status };
  return [
    ...insertTask(task),
    record(now, { kind: "task.created", ...keys, task_id: task.id, actor, data }),
  ];
}
