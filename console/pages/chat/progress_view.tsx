import { LoaderCircle, Square } from "lucide-preact";
import { Link } from "wouter-preact";
import { api, ask } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { useLog } from "../../live/log.ts";
import { may } from "../../live/session.ts";
import { Act } from "../../parts/button.tsx";
import { bareText } from "../../parts/ansi_line.tsx";
import { durationText } from "../../parts/format.ts";
import { attempt } from "../../parts/toast.tsx";
import type { Progress } from "./progress.ts";

const STEPS_SHOWN = 3;
const STEP_MAX_CHARACTERS = 160;

/** What goes on now: who works (`addressee`: whose conversation it is, or ""), since when, the last steps, and how to stop it. */
export function ProgressView({ progress, addressee }: { progress: Progress; addressee: string }) {
  const { state, worker, executionId, since } = progress;
  if (state === "idle") return null;
  return (
    <div class="progress" role="status">
      <p class="progress-head">
        <LoaderCircle size={16} class="spins" aria-hidden="true" />
        <span>{words(state, worker, addressee)}</span>
        {state === "working" && (
          <span class="number quiet" aria-hidden="true">
            {durationText(Math.max(0, secondNow.value - since))}
          </span>
        )}
        {state === "working" && executionId !== "" && (
          <>
            <Link href={`/console/executions/${executionId}`}>Log</Link>
            {may("write:executions") && (
              <Act
                class="small"
                run={() => stop(executionId)}
              >
                <Square size={12} aria-hidden="true" /> Stop
              </Act>
            )}
          </>
        )}
      </p>
      {state === "working" && <Steps executionId={executionId} />}
    </div>
  );
}

function Steps({ executionId }: { executionId: string }) {
  const { lines } = useLog(executionId, { tail: STEPS_SHOWN });
  const last = lines.slice(-STEPS_SHOWN);
  if (last.length === 0) return null;
  return (
    <ul class="steps" aria-hidden="true">
      {last.map((line, index) => <li key={index}>{stepText(line)}</li>)}
    </ul>
  );
}

// A line of a log begins with its time.
function stepText(line: string): string {
  return bareText(line).replace(/^\S*\d\d:\d\d:\d\d\S*\s+/, "").slice(0, STEP_MAX_CHARACTERS);
}

function words(state: Progress["state"], worker: string, addressee: string): string {
  const who = worker === "" ? "A worker" : worker;
  if (state === "working") return `${who} is at work`;
  if (state === "queued") return `${who} is next`;
  return addressee === "" ? "Finding out who it is for" : `On its way to ${addressee}`;
}

async function stop(id: string): Promise<void> {
  await attempt(
    () => ask(api.POST("/api/executions/{id}/cancel", { params: { path: { id } }, body: {} })),
    "Stopped",
  );
}
