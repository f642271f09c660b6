import type { PendingCompletion } from "../../api/chat/completion.ts";
import type { Call } from "../../api/call/call.ts";
import type { Operations } from "../../api/operations.ts";
import { getConversationWakeup } from "../../base/wakeups.ts";
import { ServiceError } from "../../domain/call/error.ts";
import type { StreamEnd } from "../../domain/call/vocabulary.ts";
import { buildChunks } from "../../domain/chat/completion.ts";
import type { StreamDeps } from "../http_deps.ts";
import { buildEventStream, encodeFrames } from "../stream/event_source.ts";
import { toOpenAiError } from "./problem.ts";

interface StreamRequest {
  api: Operations;
  streams: StreamDeps;
  call: Call;
  completion: PendingCompletion;
  withUsage: boolean;
  /** Aborts when the response has been sent or the client has disconnected. */
  client: AbortSignal;
}

// The streams of each message in this process. A retry may have joined the run of a closed stream.
const openStreams = new Map<string, number>();

/** Streams the reply to a message in OpenAI's form. Ends the run when the last client of its streams disconnects. */
export function openCompletionStream(request: StreamRequest): Response {
  const { api, streams, call, completion, withUsage } = request;
  const shown = new Set<string>();
  let isComplete = false;
  watchClient(request, () => isComplete);
  return buildEventStream(streams, {
    whyEnded: call.findAccessEnd,
    wakeup: getConversationWakeup(completion.session_key),
    after: 0,
    opening: "",
    formatEnd: (reason) => {
      isComplete = true;
      return reason === "complete" ? "" : formatChunk(toOpenAiError(buildEndError(reason)));
    },
    step: async (after) => {
      const state = await api.completion.read(completion);
      if (state.is === "open") {
        const steps = state.executionIds.flatMap((id) => api.completion.listSteps(id));
        return { frames: encodeFrames(steps.flatMap((step) => formatNewStep(step, shown))), after };
      }
      if (state.is === "blocked") await api.completion.end(call, completion);
      const frames = state.is === "ended"
        ? [...buildChunks(completion, state.result, withUsage).map(formatChunk), "data: [DONE]\n\n"]
        : [formatChunk(toOpenAiError(state.error))];
      return { frames: encodeFrames(frames), after, ended: "complete" };
    },
  });
}

function watchClient(
  { api, streams, call, completion, client }: StreamRequest,
  isComplete: () => boolean,
): void {
  const { message_id } = completion;
  openStreams.set(message_id, (openStreams.get(message_id) ?? 0) + 1);
  const leave = () => {
    const left = (openStreams.get(message_id) ?? 1) - 1;
    if (left > 0) return void openStreams.set(message_id, left);
    openStreams.delete(message_id);
    // The run continues after the next start, and the client's retry joins it.
    if (isComplete() || streams.lifecycle.stopping.aborted) return;
    // Without a client, nothing can report an error.
    void api.completion.end(call, completion).catch(() => {});
  };
  if (client.aborted) leave();
  else client.addEventListener("abort", leave, { once: true });
}

function formatNewStep(step: string, shown: Set<string>): string[] {
  if (shown.has(step)) return [];
  shown.add(step);
  return [`: ${step.replace(/[\p{Cc}\u2028\u2029]+/gu, " ")}\n\n`];
}

function formatChunk(chunk: object): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

function buildEndError(reason: StreamEnd): ServiceError {
  return reason === "shutdown"
    ? new ServiceError("unavailable", "Cannot stream the answer: the service is stopping. Try again.")
    : new ServiceError("unauthenticated", "Cannot stream the answer: the token is expired or revoked.");
}
