// Agents and conversations of the benches
import { join } from "node:path";
import { pause } from "./measure.ts";
import type { BenchService } from "./service.ts";

/** A process for each turn: `warm` measures those that stay. */
export const COLD = { max: 0 };

/** How long an agent that is told to talk does so. */
export const STREAM_SECONDS = 10;

// Prints events like Claude Code. bash can read the time and wait without starting another program.
const AGENT = `#!/bin/bash
echo "$SVC_MESSAGE_ID $EPOCHREALTIME" >> "$BENCH_LEDGER"
exec 3<> <(:)
echo '{"type":"system","subtype":"init","session_id":"'$SVC_RUN_ID'"}'
for ((i = 0; i < ${STREAM_SECONDS} * \${BENCH_LINES:-0}; i++)); do
  echo '{"type":"assistant","message":{"content":[{"type":"text","text":"line '$i' of what an agent has to say"}]}}'
  read -rt "$BENCH_PAUSE" -u 3
done
[ -z "$BENCH_HANG" ] || read -ru 3
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","usage":{"input_tokens":1,"output_tokens":1}}'
`;

/** A program that talks like Claude Code, in a folder of its own. */
export async function fakeAgent(): Promise<{ folder: string; program: string; ledger: string }> {
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-agent-" });
  const program = join(folder, "agent");
  await Deno.writeTextFile(program, AGENT);
  await Deno.chmod(program, 0o755);
  return { folder, program, ledger: join(folder, "ledger") };
}

/** A worker and a conversation with it; answers the id of that. */
export async function newConversation(service: BenchService, name: string, engine = ""): Promise<string> {
  const worker = await service.call("POST /api/workers", { name, engine });
  return (await service.call("POST /api/local/sessions", { worker_id: worker.id })).id;
}

/** Waits until so many runs have ended. */
export async function untilEnded(service: BenchService, count: number): Promise<void> {
  for (let ended = 0; ended < count; await pause(5)) {
    const { completed, failed } = await tasksOf(service);
    ended = completed + failed;
  }
}

/** How many tasks there are, by their status. */
export async function tasksOf(
  service: BenchService,
): Promise<Record<"running" | "completed" | "failed", number>> {
  return (await service.call("GET /api/system/overview")).tasks;
}
