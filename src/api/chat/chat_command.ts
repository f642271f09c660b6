import { endOpenRuns } from "./conversation.ts";
import { createId } from "../../base/id.ts";
import { type ChatCommand, formatChatHelp } from "../../domain/chat/chat_command.ts";
import { LOCAL_PLATFORM } from "../../domain/call/message_id.ts";
import { buildOutbound } from "../../domain/chat/message.ts";
import { failEarlierMessages, readConversationActivity } from "../../store/chat/chat_command.ts";
import type { Statement } from "../../store/db/database.ts";
import { takeMessage } from "../../store/chat/inbound.ts";
import { record, recordIdle } from "../../store/events/journal.ts";
import { sendMessage } from "../../store/chat/outbound.ts";
import { findOpenRun } from "../../store/work/steer.ts";
import { deleteApprovals } from "../../store/work/approval.ts";
import { withdrawQuestions } from "../../store/work/question_transitions.ts";
import { deleteContexts, discardRunContexts } from "../../store/chat/conversation_context.ts";
import { cancelOwnerTasks } from "../../store/work/task_transitions.ts";
import { findWorker, listCandidates } from "../../store/workers/worker.ts";
import type { Deps } from "../call/services.ts";
import { formatSenderActor } from "../call/platforms.ts";
import { buildSteer } from "../work/steer.ts";

const WORKERS_SHOWN_MAX = 50;
const DESCRIPTION_SHOWN_CHARACTERS = 100;

type CommandDeps = Deps<"db" | "clock" | "platforms" | "interruptRun" | "interruptRouting">;

interface CommandMessage {
  id: string;
  session_key: string;
  platform: string;
  sender: string;
  /** The default worker of a local session. */
  worker_id: string | null;
}

interface CommandEffect {
  reply: string;
  statements: Statement[];
}

/** received -> bee_processed: runs a chat command and sends the reply (contract 10.7). */
export async function runChatCommand(
  deps: CommandDeps,
  message: CommandMessage,
  command: ChatCommand,
  rest: string,
): Promise<void> {
  const { db, clock } = deps;
  const { id, session_key, platform } = message;
  const { reply, statements } = await COMMANDS[command](deps, message, rest);
  const now = clock.now();
  const outbound = { id: createId(), session_key, platform, message_id: id, content: reply };
  const { won } = await db.write([
    ...takeMessage(id, "reply", now),
    record(now, {
      kind: "message.routed",
      session_key,
      message_id: id,
      data: { reason: `the command ${command}` },
    }),
    ...statements,
    ...sendMessage(buildOutbound({ ...outbound, source_type: "system", source_id: "" }, now)),
    recordIdle(now, session_key),
  ]);
  // Another request may have cleared the conversation first.
  if (won && command === "stop") await endOpenRuns(deps, session_key);
}

const COMMANDS: Record<
  ChatCommand,
  (deps: CommandDeps, message: CommandMessage, rest: string) => CommandEffect | Promise<CommandEffect>
> = {
  help: async ({ db, platforms }, { platform, worker_id }) => {
    const own = platform === LOCAL_PLATFORM && worker_id !== null ? await findWorker(db, worker_id) : null;
    return {
      reply: formatChatHelp(own?.name ?? platforms.get(platform)?.config?.worker ?? ""),
      statements: [],
    };
  },
  workers: async ({ db }) => {
    const workers = await listCandidates(db);
    const lines = workers.slice(0, WORKERS_SHOWN_MAX).map(({ name, description, paused }) => {
      const about = description.split("\n")[0]?.slice(0, DESCRIPTION_SHOWN_CHARACTERS) ?? "";
      return `@${name}${paused ? " (paused)" : ""}${about === "" ? "" : `: ${about}`}`;
    });
    const more = workers.length - lines.length;
    const reply = [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
    return { reply: reply || "There are no workers yet.", statements: [] };
  },
  status: async ({ db, clock }, { session_key }) => {
    const { running, waiting, questions, scheduled } = await readConversationActivity(db, session_key);
    const now = clock.now();
    const lines = [
      ...running.map(({ worker, since }) => `${worker}: running for ${Math.round((now - since) / 1000)} s.`),
      ...(waiting > 0 ? [`Waiting tasks: ${waiting}.`] : []),
      ...(questions > 0 ? [`Open questions: ${questions}.`] : []),
      ...(scheduled > 0 ? [`Schedules: ${scheduled}.`] : []),
    ];
    return { reply: lines.join("\n") || "Nothing is running or scheduled.", statements: [] };
  },
  stop: async ({ db, clock }, { id, session_key, platform, sender }) => {
    const now = clock.now();
    const by = formatSenderActor(platform, sender);
    const { running, waiting } = await readConversationActivity(db, session_key);
    return {
      reply: running.length + waiting === 0
        ? "Nothing was running. Schedules continue."
        : `Stopped ${running.length} running and ${waiting} waiting tasks. Schedules continue.`,
      statements: [
        cancelOwnerTasks({ session_key, type: "immediate" }, `stopped by ${by}`, now),
        failEarlierMessages(session_key, id, "stopped", now),
        ...withdrawQuestions({ session_key }, by, now),
      ],
    };
  },
  steer: async ({ db, clock }, { session_key, platform, sender }, content) => {
    if (content === "") return { reply: "The text is missing. Write: /steer <text>", statements: [] };
    const run = await findOpenRun(db, session_key, sender);
    if (run === null) {
      return {
        reply: "Nothing that you started is running here. Send the text as a message.",
        statements: [],
      };
    }
    const { worker_name, ...keys } = run;
    const actor = formatSenderActor(platform, sender);
    return {
      reply: `Passed on to ${worker_name}.`,
      statements: buildSteer(keys, { content, by: actor }, clock.now()).statements,
    };
  },
  new: ({ clock }, { session_key, platform, sender }) => ({
    reply: "Started a new conversation. Workers no longer remember the old one. Running tasks continue.",
    statements: [
      deleteContexts(session_key),
      discardRunContexts(session_key),
      deleteApprovals(session_key),
      record(clock.now(), {
        kind: "context.cleared",
        session_key,
        actor: formatSenderActor(platform, sender),
      }),
    ],
  }),
};
