import { endOpenRuns } from "./conversation_context.ts";
import { newId } from "../../base/id.ts";
import { type ChatCommand, helpText } from "../../domain/chat/chat_command.ts";
import { outboundOf } from "../../domain/chat/message.ts";
import { dropEarlier, findGoing } from "../../store/chat/chat_command.ts";
import type { Statement } from "../../store/db/database.ts";
import { takeMessage } from "../../store/chat/inbound.ts";
import { record, recordIdle } from "../../store/events/journal.ts";
import { sendMessage } from "../../store/chat/outbound.ts";
import { withdrawQuestions } from "../../store/work/question_transitions.ts";
import { deleteContexts, forgetContexts } from "../../store/chat/conversation_context.ts";
import { cancelTasksOf } from "../../store/work/task_transitions.ts";
import { listCandidates } from "../../store/workers/worker.ts";
import type { Deps } from "../call/services.ts";
import { senderActor } from "../call/platforms.ts";

const WORKERS_SHOWN_MAX = 50;
const DESCRIPTION_SHOWN_CHARACTERS = 100;

type CommandNeeds = Deps<"db" | "clock" | "platforms" | "interruptRun" | "interruptRouting">;

interface Commanding {
  id: string;
  session_key: string;
  platform: string;
  sender: string;
}

interface Effect {
  words: string;
  statements: Statement[];
}

/** received -> bee_processed: runs a chat command and sends the reply (contract 10.7). */
export async function carryOutCommand(
  needs: CommandNeeds,
  message: Commanding,
  command: ChatCommand,
): Promise<void> {
  const { db, clock } = needs;
  const { id, session_key, platform } = message;
  const { words, statements } = await EFFECTS[command](needs, message);
  const now = clock.now();
  const reply = { id: newId(), session_key, platform, message_id: id, content: words };
  const { won } = await db.write([
    ...takeMessage(id, "reply", now),
    record(now, {
      kind: "message.routed",
      session_key,
      message_id: id,
      data: { reason: `the command ${command}` },
    }),
    ...statements,
    ...sendMessage(outboundOf({ ...reply, source_type: "system", source_id: "" }, now)),
    recordIdle(now, session_key),
  ]);
  // Another request may have cleared the conversation first.
  if (won && command === "stop") await endOpenRuns(needs, session_key);
}

const EFFECTS: Record<ChatCommand, (needs: CommandNeeds, message: Commanding) => Effect | Promise<Effect>> = {
  help: ({ platforms }, { platform }) => ({
    words: helpText(platforms.get(platform)?.config?.worker ?? ""),
    statements: [],
  }),
  workers: async ({ db }) => {
    const workers = await listCandidates(db);
    const lines = workers.slice(0, WORKERS_SHOWN_MAX).map(({ name, description, paused }) => {
      const about = description.split("\n")[0]?.slice(0, DESCRIPTION_SHOWN_CHARACTERS) ?? "";
      return `@${name}${paused ? " (paused)" : ""}${about === "" ? "" : `: ${about}`}`;
    });
    const more = workers.length - lines.length;
    const words = [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
    return { words: words || "There are no workers yet.", statements: [] };
  },
  status: async ({ db, clock }, { session_key }) => {
    const { running, waiting, questions, scheduled } = await findGoing(db, session_key);
    const now = clock.now();
    const lines = [
      ...running.map(({ worker, since }) => `${worker}: running for ${Math.round((now - since) / 1000)} s.`),
      ...(waiting > 0 ? [`Waiting tasks: ${waiting}.`] : []),
      ...(questions > 0 ? [`Open questions: ${questions}.`] : []),
      ...(scheduled > 0 ? [`Schedules: ${scheduled}.`] : []),
    ];
    return { words: lines.join("\n") || "Nothing is running or scheduled.", statements: [] };
  },
  stop: async ({ db, clock }, { id, session_key, platform, sender }) => {
    const now = clock.now();
    const by = senderActor(platform, sender);
    const { running, waiting } = await findGoing(db, session_key);
    return {
      words: running.length + waiting === 0
        ? "Nothing was running. Schedules continue."
        : `Stopped ${running.length} running and ${waiting} waiting tasks. Schedules continue.`,
      statements: [
        cancelTasksOf({ session_key, type: "immediate" }, `stopped by ${by}`, now),
        dropEarlier(session_key, id, "stopped", now),
        ...withdrawQuestions({ session_key }, by, now),
      ],
    };
  },
  new: ({ clock }, { session_key, platform, sender }) => ({
    words: "Started a new conversation. Workers no longer remember the old one. Running tasks continue.",
    statements: [
      deleteContexts(session_key),
      forgetContexts(session_key),
      record(clock.now(), { kind: "context.cleared", session_key, actor: senderActor(platform, sender) }),
    ],
  }),
};
